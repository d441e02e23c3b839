package runner

import (
	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/check/judge"
	"github.com/agent-ci/agent-ci/runner/check/verify"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/setup/start"
)

// The types below form the chain of a run, after start.Opened: ready, work, verdict. Each stage takes one,
// and returns the next, which embeds it. Values are immutable. The last stage makes a publish.Publication.

// ready is a place prepared for the agent.
type ready struct {
	*start.Opened
	baselineCache *verify.BaselineCache // baselines of earlier runs; nil for none
	baseline      transcript.Verify
	earlierChange *gitops.ChangeSet // of the pull request that the agent continues; nil for none
	cleanMerge    bool              // earlierChange merged with the new base without a conflict, so the agent works only if a check is red
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
	if rd.Task.Repair == nil {
		return nil
	}
	return rd.earlierChange
}

// judgeCase returns the input for judging change: the job's rules and, for a repair, the content of the
// repaired pull request.
func (rd *ready) judgeCase(change *gitops.ChangeSet) judge.Case {
	return rd.Lessons.JudgeCase(rd.Job(), change, rd.repairedChange())
}

// verdict is work that may be published.
type verdict struct {
	work
	proposal publish.Proposal
}
