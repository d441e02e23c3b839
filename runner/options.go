package runner

import (
	"github.com/agent-ci/agent-ci/runner/setup/start"
	"github.com/agent-ci/agent-ci/tools"
)

// Options are a run's inputs: the task, its settings and its environment.
type Options struct {
	JobFile    string // path of a job file; JobFile, Issue, Prompt or PromptFile is the task
	Issue      string // as form.ParseIssue reads it
	Prompt     string
	PromptFile string // path, or - for Stdin
	// Repair names a pull request whose red checks the run fixes, in a form that form.ParseIssue
	// reads. It replaces the event as the task. The job must have task.from: event.
	Repair string

	Dir      string // the checkout, or a folder in it
	Out      string // run directory; empty means a new one in the state folder
	Publish  string // github, local or none; empty chooses by the environment
	Replay   string // path of a scripted session that replaces the model
	Set      []string
	Model    string
	Operator string // path of the operator's file; empty for none

	// Tools are functions of the embedding program that the model can call, besides agent-ci's own.
	// Their calls are recorded, truncated and redacted like others. A replay answers them from the
	// record. A job can deny them with tools.allow and tools.deny. agent-ci calls Run concurrently
	// for a tool that does not mutate. Run must return soon after its context ends: the run waits.
	Tools []tools.Tool

	NoBaselineCache bool // neither use nor store cached baseline results

	Surroundings
}

// Surroundings is a command's environment.
type Surroundings = start.Surroundings
