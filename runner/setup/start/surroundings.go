package start

import (
	"context"
	"io"
	"time"

	"github.com/agent-ci/agent-ci/runner/publish/progress"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/task/actions"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// Surroundings is a command's environment.
type Surroundings struct {
	Environ  []string // of agent-ci itself
	Reserved []string // names of AGENT_CI_ variables that are flags, not job keys
	Version  string
	Stdin    io.Reader
	// ScriptEngine is the command line of a program that calls engine.Main of tools/code/engine. It
	// serves models that call tools from scripts. Without it they call each tool directly.
	ScriptEngine []string
	Quiet        bool
	Events       io.Writer // receives each event as a line of JSON; may be nil
	Progress     io.Writer // receives lines for a person; may be nil
	// Terminal is Progress's terminal with a status line, or nil.
	Terminal *progress.Terminal
	Step     *actions.Step // the step in GitHub Actions; may be nil
	// ForceStop, when it ends, stops a cancelled run at once, with unfinished work; may be nil.
	ForceStop context.Context
}

// New returns the start of one command's run. id is the new run's id, or "" for a run that exists.
func New(id string, req Request, given settings.Inputs, s Surroundings) *Start {
	given.Env, given.Reserved = settings.Environment(s.Environ), s.Reserved
	rec := record.New(id, settings.Secrets(given.Env, nil))
	rec.DigestsFolder = record.DigestsPath(given.Env.Get)
	rec.Ephemeral = given.Env.Artifacts() != ""
	watch := &progress.Watch{Events: s.Events, Step: s.Step}
	if !s.Quiet {
		watch.Lines, watch.Terminal = s.Progress, s.Terminal
	}
	rec.StepObserver = watch
	return &Start{
		Record: rec, Env: given.Env, Source: &settings.Source{Inputs: given, Warn: rec.Warn}, Watch: watch, Version: s.Version, Began: time.Now(),
		Found: Found{Assignment: &Assignment{Request: &req}},
	}
}
