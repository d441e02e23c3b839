package runner

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/secrets"
	"github.com/agent-ci/agent-ci/runner/actions"
	"github.com/agent-ci/agent-ci/runner/confine"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/progress"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/settings"
	"github.com/agent-ci/agent-ci/runner/workspace"
	"github.com/agent-ci/agent-ci/tools"
)

// Surroundings are what a command of agent-ci takes from where it is started.
type Surroundings struct {
	Environ  []string // of agent-ci itself
	Reserved []string // names of AGENT_CI_ variables that are flags, not job keys
	Version  string
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

// invocation is how agent-ci was started, and where it writes. What stages find out
// is not in it.
type invocation struct {
	version  string
	dir      string    // the checkout, or a folder in it
	publish  string    // --publish
	operator string    // path of the operator's file; empty for none
	repairs  string    // the pull request that a command names to be repaired; empty for none
	script   string    // path of a scripted session; empty where a model is asked
	began    time.Time // less the time that a run which goes on did not live
	hurry    context.Context
	env      settings.Environment
	source   *settings.Source
	rec      *record.Record
	watch    *progress.Watch
	tools    []tools.Tool // of who embeds this package
	engine   []string     // of scripts

	foreign       bool // the run directory is a bundle, of whoever made it
	strangers     bool // the record of the run that goes on is not this machine's
	keepBaselines bool // what checks say of bases is kept, and what is kept believed
}

func newInvocation(id string, given settings.Given, s Surroundings) *invocation {
	given.Env, given.Reserved = settings.Environment(s.Environ), s.Reserved
	in := &invocation{version: s.Version, began: time.Now(), hurry: s.Hurry, env: given.Env, engine: s.ScriptEngine}
	in.rec = record.New(id, settings.Secrets(in.env, nil))
	in.rec.Notes = record.NotesPath(in.env.Get)
	in.rec.Vanishes = in.env.Artifacts() != ""
	in.source = &settings.Source{Given: given, Warn: in.rec.Warn}
	in.watch = &progress.Watch{Events: s.Events, Step: s.Step}
	if !s.Quiet {
		in.watch.Lines, in.watch.Terminal = s.Progress, s.Terminal
	}
	in.rec.Onlooker = in.watch.Begins
	return in
}

// earlyFilters opens places for filters before the job is known.
func (in *invocation) earlyFilters() gitops.OpenFilter { return confine.EarlyFilters(in.rec, in.env) }

// maskSecrets keeps the secrets of the environment out of the log of the step.
func (in *invocation) maskSecrets() { in.watch.Mask(in.env.Secrets()) }

// keepOut makes the record remove the secrets of a job besides those of the
// environment.
func (in *invocation) keepOut(j *job.Job) { in.rec.KeepOut(settings.Secrets(in.env, j)) }

// warnOfShortSecrets tells of values that are not searched for.
func (in *invocation) warnOfShortSecrets() {
	if short := in.rec.Redactor().Short(); len(short) > 0 {
		in.rec.Warn("short_secret", "%s: the value is shorter than %d characters and is not searched for in outputs.", strings.Join(short, ", "), secrets.MinLength)
	}
}

// makeDirectory makes the run directory, at out or in the usual place, and begins
// the transcript.
func (in *invocation) makeDirectory(out string) error {
	named := out != ""
	if !named {
		var err error
		if out, err = record.DefaultPath(in.env.Get, in.rec.ID); err != nil {
			return err
		}
	}
	path, err := filepath.Abs(out)
	if err != nil {
		return fmt.Errorf("find run directory: %w", err)
	}
	if err := workspace.OutsideCheckout(path, in.dir); err != nil {
		return err
	}
	if err := in.rec.Make(path, in.watch.Show); err != nil {
		return err
	}
	if named {
		record.NoteElsewhere(in.env.Get, in.rec.ID, path)
	}
	return nil
}

// inTime does work until limits.time is over, counted from the start of the run.
// whole is the context that this limit does not end.
func (in *invocation) inTime(whole context.Context, l job.Limits, work func(ctx context.Context) error) error {
	ctx, cancel := whole, func() {}
	if limit := time.Duration(l.Time); limit > 0 {
		stop := outcome.Stopf(outcome.BudgetExceeded, settings.TimeReason,
			"The run was stopped after %s; raise limits.time or give a smaller task.", limit)
		ctx, cancel = context.WithDeadlineCause(whole, in.began.Add(limit), stop)
	}
	defer cancel()
	if err := work(ctx); err != nil {
		return outcome.Of(ctx, err)
	}
	return nil
}

// graceTime is how long a run whose time is over may take to keep its work, and
// as long again to publish it.
const graceTime = time.Minute

// inGrace does what keeps work, also when the time of the run, which ends ctx, is
// over or nearly. It does not end whole.
func inGrace(ctx, whole context.Context, work func(context.Context) error) error {
	end, limited := ctx.Deadline()
	if !limited {
		return work(ctx)
	}
	if least := time.Now().Add(graceTime); end.Before(least) {
		end = least
	}
	late, cancel := context.WithDeadline(whole, end)
	defer cancel()
	return work(late)
}

// guarded turns a panic into the outcome internal_error, so that a result is
// written after it.
func guarded(ctx context.Context, work func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = outcome.Stopf(outcome.InternalError, "panic",
				"agent-ci itself failed (%v); please report this with %s.", p, record.TranscriptFile).Because(fmt.Errorf("%s", debug.Stack()))
		}
	}()
	return work(ctx)
}
