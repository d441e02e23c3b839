package runner

import (
	"context"
	"io"

	"github.com/agent-ci/agent-ci/runner/publish/progress"
	"github.com/agent-ci/agent-ci/runner/task/actions"
	"github.com/agent-ci/agent-ci/tools"
)

// Options is everything that a run takes from its surroundings.
type Options struct {
	JobFile    string // path of a job file; one of the four is the task
	Issue      string // as form.ParseIssue reads it
	Prompt     string
	PromptFile string // path, or - for Stdin
	// Repair is the pull request of a run, in the form of form.ParseIssue. The run fixes its red
	// checks. It is the task for any event. The job must have task.from: event.
	Repair string

	Dir      string // the checkout, or a folder in it
	Out      string // run directory; empty means a new one in the usual place
	Publish  string // github, local, none; empty means what the surroundings allow
	Replay   string // path of a scripted session that stands in for the model
	Set      []string
	Model    string
	Operator string // path of the operator's file; empty for none

	// Tools are functions of the embedding program for the model, besides agent-ci's own. Their
	// calls are recorded, cut and redacted like others, and answered from the record in a replay. A
	// job can refuse them by tools.allow and tools.deny. Run is called concurrently for a tool that
	// does not mutate, and must return soon after its context has ended, because the run waits for
	// it.
	Tools []tools.Tool

	NoBaselineCache bool // what checks said of the base in earlier runs is not believed, nor kept

	Surroundings
}

// Surroundings is a command's environment.
type Surroundings struct {
	Environ  []string // of agent-ci itself
	Reserved []string // names of AGENT_CI_ variables that are flags, not job keys
	Version  string
	Stdin    io.Reader
	// ScriptEngine starts a program that calls engine.Main of tools/code/engine, for models that
	// call tools in scripts. Without it they get single tools.
	ScriptEngine []string
	Quiet        bool
	Events       io.Writer // gets each event as a line of JSON; may be nil
	Progress     io.Writer // gets lines for a person; may be nil
	// Terminal is Progress's terminal with a status line, or nil.
	Terminal *progress.Terminal
	Step     *actions.Step // of the job in GitHub Actions; may be nil
	// ForceStop makes a cancelled run end at once, with work undone; may be nil.
	ForceStop context.Context
}
