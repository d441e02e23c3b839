package runner

import (
	"context"
	"io"

	"github.com/agent-ci/agent-ci/runner/publish/progress"
	"github.com/agent-ci/agent-ci/runner/task/actions"
	"github.com/agent-ci/agent-ci/tools"
)

// Options say what to run and with what. Everything that a run takes from its
// surroundings stands here.
type Options struct {
	JobFile    string // path of a job file; one of the four is the task
	Issue      string // as job.ParseIssue reads it
	Prompt     string
	PromptFile string // path, or - for Stdin
	// Repair is the pull request of a run, as job.ParseIssue reads it, whose red checks are
	// to be mended: the task, whatever the event is. The job has task.from: event then.
	Repair string

	Dir      string // the checkout, or a folder in it
	Out      string // run directory; empty means a new one in the usual place
	Publish  string // github, local, none; empty means what the surroundings allow
	Replay   string // path of a scripted session that stands in for the model
	Set      []string
	Model    string
	Operator string // path of the operator's file; empty for none

	// Tools are called by the model besides those that agent-ci has: functions of the program
	// that embeds this package. Their calls are recorded as all are, cut and redacted, and
	// answered by the record in a replay. A job can refuse them by tools.allow and tools.deny.
	// Run is called from several goroutines at once, for a tool that does not mutate. It has to
	// return soon after its context has ended: the run waits for it.
	Tools []tools.Tool

	NoBaselineCache bool // what checks said of the base in earlier runs is not believed, nor kept

	Surroundings
}

// Surroundings are what a command of agent-ci takes from where it is started.
type Surroundings struct {
	Environ  []string // of agent-ci itself
	Reserved []string // names of AGENT_CI_ variables that are flags, not job keys
	Version  string
	Stdin    io.Reader
	// ScriptEngine starts a program that calls engine.Main of tools/code/engine, for models that
	// call tools in scripts. Without it they get their tools one by one.
	ScriptEngine []string
	Quiet        bool
	Events       io.Writer // gets each event as a line of JSON; may be nil
	Progress     io.Writer // gets lines for a person; may be nil
	// Terminal is the one that Progress writes to, which shows a status line; nil for none.
	Terminal *progress.Terminal
	Step     *actions.Step // of the job in GitHub Actions; may be nil
	// Hurry ends when a run whose context has ended is to come to its end at
	// once, whatever it leaves undone; may be nil.
	Hurry context.Context
}
