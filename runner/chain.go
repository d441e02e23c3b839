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

// The types below form the chain of a run: request, assignment, place, ready, work, verdict,
// publication. Each stage takes one, and returns the next, which embeds it. Values are immutable.

// request is what the command line asks for.
type request struct {
	dir        string // the checkout, or a folder in it
	publish    string // --publish; empty chooses by the environment
	operator   string // path of the operator's file; empty for none
	script     string // path of a scripted session; empty for a real model
	program    program
	baselines  bool              // use cached baseline results, and cache this run's
	resumedRun *history.Run      // the run to resume; nil for a new one
	recording  *replay.Recording // replaces model, servers and people; nil outside of a replay
}

// alreadyWorked reports whether the agent of a resumed run had begun to work.
func (q *request) alreadyWorked() bool { return q.resumedRun != nil && q.resumedRun.AgentBegan() }

// program is the embedding program's contribution.
type program struct {
	tools  []tools.Tool
	engine []string // command line of the engine for scripts
}

// assignment is a run's task with its settings, requester and model.
type assignment struct {
	*request
	settings     *settings.Settings
	project      publish.Project
	task         intake.Task
	source       *intake.Source // reads the task; nil if the task comes from a record
	model        provider.Model
	outputSchema settings.OutputSchema
	repair       *repair.Attempt // the repair to attempt; nil for other tasks
}

func (a *assignment) job() *job.Job { return &a.settings.Job }

// place is the agent's work place with the base commit's configuration.
type place struct {
	*assignment
	workspace   *workspace.Workspace
	configBase  gitops.Base // commit that configures the run; zero for a resumed run on a pull request
	rules       *rules.Set
	authorities settings.Authorities // certificate authorities for hosts that commands reach
	skills      skills.Offer         // skills the agent can load
	lessons     *proposals.Lessons
	guides      []briefing.Guide
}

// ready is a place prepared for the agent.
type ready struct {
	*place
	sandboxes      *confine.Sandboxes
	hooks          *hooks.Hooks // nil for none
	key            *sshsig.Key  // signs the commit; nil for none
	agent          *worker.Agent
	baselineCache  *verify.BaselineCache // baselines of earlier runs; nil for none
	baseline       transcript.Verify
	startingChange startingChange
}

// startingChange is the change of an earlier pull request that the agent starts with.
type startingChange struct {
	change     *gitops.ChangeSet // nil for none
	cleanMerge bool              // it merged with the new base without a conflict, so the agent works only if a check is red
}

// work is the state of the agent's work. Functions take it by value and return the next state.
type work struct {
	*ready
	change          *gitops.ChangeSet // the agent's change so far
	supportedChange *gitops.ChangeSet // the last change that supports every claim of the summary
	droppedPaths    []string          // protected files that the agent changed, left out of change
	verification    transcript.Verify // the latest results of the checks
	stopped         *outcome.Stop     // set if a budget stopped the work
	summary         string            // a recipe's or bundle's summary, for a run without an agent's
	outputFile      string            // file with the object described by task.output_schema
}

// repairedChange returns the content of the pull request to fix, or nil for other tasks.
func (rd *ready) repairedChange() *gitops.ChangeSet {
	if rd.task.Repair == nil {
		return nil
	}
	return rd.startingChange.change
}

// judgeCase returns what judges change: the job's rules on changes, with the repaired pull request's content.
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
	posted    *feedback.Posted // findings posted on the run's subject; nil for none
}
