// Package start prepares a run up to its agent: the assignment, the place of work with its sandboxes, and
// the first events. No command of the repository has run by then but hooks, and the model was not asked.
package start

import (
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/sshsig"
	"github.com/agent-ci/agent-ci/policy/rules"
	"github.com/agent-ci/agent-ci/runner/agent/assembly"
	"github.com/agent-ci/agent-ci/runner/agent/briefing"
	"github.com/agent-ci/agent-ci/runner/agent/hooks"
	"github.com/agent-ci/agent-ci/runner/agent/provider"
	"github.com/agent-ci/agent-ci/runner/agent/skills"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/publish/progress"
	"github.com/agent-ci/agent-ci/runner/publish/proposals"
	"github.com/agent-ci/agent-ci/runner/publish/repair"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/replay"
	"github.com/agent-ci/agent-ci/runner/replay/history"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
	"github.com/agent-ci/agent-ci/tools"
)

// Start has what all stages use. Its stages take a value of the chain Request, Assignment, Place, Opened,
// and return the next, which embeds it. Such values are immutable.
type Start struct {
	Record  *record.Record
	Env     settings.Environment
	Source  *settings.Source
	Watch   *progress.Watch
	Version string
	Began   time.Time // start of the run; a resumed run's gap is subtracted
	Found
}

// Found is what the stages found and made, for the run's end. A stage sets its results here even if it
// fails afterwards.
type Found struct {
	history.EarlyExit
	Assignment    *Assignment          // as far as known; never nil
	AbandonedBase gitops.Base          // of the first checkout, if the run moved to a clone
	Workspace     *workspace.Workspace // nil without a checkout
	Place         *Place               // nil until the base commit's configuration is read
	Sandboxes     *confine.Sandboxes   // nil until openSandboxes makes them
	Hooks         *hooks.Hooks
	Agent         *assembly.Agent // nil until makeAgent makes it
	Resumed       bool            // whether run.resumed is written

	beganComment, beganRepair bool // a progress comment or a repair was begun, and is to be concluded
}

// Request is what the command line asks for.
type Request struct {
	Dir          string            // the checkout, or a folder in it
	Publish      string            // --publish; empty chooses by the environment
	Operator     string            // path of the operator's file; empty for none
	Script       string            // path of a scripted session; empty for a real model
	Tools        []tools.Tool      // of the embedding program
	ScriptEngine []string          // command line of the engine for scripts
	Baselines    bool              // use cached baseline results, and cache this run's
	ResumedRun   *history.Run      // the run to resume; nil for a new one
	Recording    *replay.Recording // replaces model, servers and people; nil outside of a replay
}

// AlreadyWorked reports whether the agent of a resumed run had begun to work.
func (q *Request) AlreadyWorked() bool { return q.ResumedRun != nil && q.ResumedRun.AgentBegan() }

// Assignment is a run's task with its settings, requester and model.
type Assignment struct {
	*Request
	Settings     *settings.Settings
	Project      publish.Project
	Task         intake.Task
	Source       *intake.Source // reads the task; nil if the task comes from a record
	Model        provider.Model
	OutputSchema settings.OutputSchema
	Repair       *repair.Attempt // the repair to attempt; nil for other tasks
}

// Job returns the job in the settings.
func (a *Assignment) Job() *job.Job { return &a.Settings.Job }

// Place is the agent's work place with the base commit's configuration.
type Place struct {
	*Assignment
	Workspace   *workspace.Workspace
	configBase  gitops.Base // commit that configures the run; zero for a resumed run on a pull request
	rules       *rules.Set
	authorities settings.Authorities // certificate authorities for hosts that commands reach
	Skills      skills.Offer         // skills the agent can load
	Lessons     *proposals.Lessons
	Guides      []briefing.Guide
}

// Opened is a place with its sandboxes, hooks and agent.
type Opened struct {
	*Place
	Sandboxes *confine.Sandboxes
	Hooks     *hooks.Hooks // nil for none
	Key       *sshsig.Key  // signs the commit; nil for none
	HookText  string       // text from hooks for the agent
	Agent     *assembly.Agent
}

// CheckoutOptions returns the options to open the checkout in dir.
func (s *Start) CheckoutOptions(dir string) workspace.Options {
	return workspace.Options{Dir: dir, Path: s.Env.Get("PATH"), Forge: s.Env.ForgeServer(), OpenFilter: confine.EarlyFilters(s.Record, s.Env)}
}

// Publisher returns the publish.Publisher for a change of ws in project p. ws may be nil.
func (s *Start) Publisher(p publish.Project, ws *workspace.Workspace) publish.Publisher {
	return publish.Publisher{Project: p, Record: s.Record, Workspace: ws, Env: s.Env}
}

// Forge returns the publish.Forge for project p. ws may be nil.
func (s *Start) Forge(p publish.Project, ws *workspace.Workspace) publish.Forge {
	return publish.Forge{Publisher: s.Publisher(p, ws)}
}
