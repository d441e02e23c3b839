package runner

import (
	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/sshsig"
	"github.com/agent-ci/agent-ci/policy/rules"
	"github.com/agent-ci/agent-ci/runner/agent/briefing"
	"github.com/agent-ci/agent-ci/runner/agent/hooks"
	"github.com/agent-ci/agent-ci/runner/agent/provider"
	"github.com/agent-ci/agent-ci/runner/agent/skills"
	"github.com/agent-ci/agent-ci/runner/agent/worker"
	"github.com/agent-ci/agent-ci/runner/check/judge"
	"github.com/agent-ci/agent-ci/runner/check/verify"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/publish/feedback"
	"github.com/agent-ci/agent-ci/runner/publish/proposals"
	"github.com/agent-ci/agent-ci/runner/publish/repair"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/replay"
	"github.com/agent-ci/agent-ci/runner/replay/history"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
	"github.com/agent-ci/agent-ci/tools"
)

// The values below form the chain of a run. Each stage makes one from the value before, which it
// embeds. Values are immutable.

type request struct {
	dir        string // the checkout, or a folder in it
	publish    string // --publish; empty for what the surroundings allow
	operator   string // path of the operator's file; empty for none
	script     string // path of a scripted session; empty where a model is asked
	program    program
	baselines  bool              // baselines of earlier runs are used, and this run's is kept for later ones
	resumedRun *history.Run      // the run that is resumed; nil for a new one
	recording  *replay.Recording // stands in for model, servers and people; nil where nothing is replayed
}

// program is the embedding program's contribution.
type program struct {
	tools  []tools.Tool
	engine []string // starts what runs scripts
}

// assignment is a run's task with its settings, requester and model.
type assignment struct {
	*request
	settings *settings.Settings
	project  publish.Project
	task     intake.Task
	source   *intake.Source // of the task; nil where it comes from a record
	model    provider.Model
	output   settings.OutputSchema
	repair   *repair.Attempt // what is to be repaired; nil for another task
}

func (a *assignment) job() *job.Job { return &a.settings.Job }

// place is the agent's work place with the base commit's configuration.
type place struct {
	*assignment
	workspace   *workspace.Workspace
	configBase  gitops.Base // by which the run is configured; of a resumed run on a pull request the zero value
	rules       *rules.Set
	authorities settings.Authorities // of hosts that commands reach
	skills      skills.Offer         // that the agent can load
	lessons     *proposals.Lessons
	guides      []briefing.Guide
}

// ready is a place prepared for the agent.
type ready struct {
	*place
	sandboxes      *confine.Sandboxes
	hooks          *hooks.Hooks // nil where there are none
	key            *sshsig.Key  // that the commit is signed with; nil for none
	agent          *worker.Agent
	baselineCache  *verify.BaselineCache // baselines of earlier runs; nil for none
	baseline       transcript.Verify
	startingChange startingChange
}

// startingChange is an earlier pull request's change to start with.
type startingChange struct {
	change     *gitops.ChangeSet // nil for none
	cleanMerge bool              // the agent works only if checks of it are red: it went over the new base without a conflict
}

// work is the state of the agent's work. Functions take it by value and return the next state.
type work struct {
	*ready
	change       *gitops.ChangeSet // as the checkout holds it
	founded      *gitops.ChangeSet // the last change for which each claim of the summary has evidence
	dropped      []string          // protected files that the agent changed, left out of change
	verification transcript.Verify // the last one
	stopped      *outcome.Stop     // by which a budget ended the work
	summary      string            // where no agent wrote one
	outputFile   string            // with the object that task.output_schema describes
}

// repairedChange returns the content of the pull request to fix, or nil for other tasks.
func (rd *ready) repairedChange() *gitops.ChangeSet {
	if rd.task.Repair == nil {
		return nil
	}
	return rd.startingChange.change
}

func (rd *ready) judgeCase(change *gitops.ChangeSet) judge.Case {
	return rd.lessons.Case(rd.job(), change, rd.repairedChange())
}

// verdict is work that may be published.
type verdict struct {
	work
	proposal publish.Proposal
}

// publication is a verdict with its publication so far.
type publication struct {
	*verdict
	published publish.Publication
	posted    *feedback.Posted // on the subject of the run; nil for nothing
}
