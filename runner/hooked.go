package runner

import (
	"context"
	"path"
	"slices"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/confine"
	"github.com/agent-ci/agent-ci/runner/hooks"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/settings"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// readyHooks finds the hooks of the run, and where they run. recorded are the answers that the record of a run has
// which goes on.
func (in *invocation) readyHooks(ctx context.Context, so *reached, recorded hooks.Answers) error {
	operators, err := settings.ReadOperatorFile(ctx, in.operator, so.workspace.Root())
	if err != nil {
		return err
	}
	all, err := hooks.Collect(operators, so.job().Hooks, so.workspace.Commit().ReadBase, in.env.Get("HOME"))
	if err != nil || len(all) == 0 {
		return err
	}
	so.hooks = &hooks.Hooks{
		All: all, Record: in.rec, Answers: recorded,
		Facts: hooks.Facts{
			RunID: in.rec.ID, Model: so.job().Model.Name, Root: so.workspace.Seen(), Path: path.Clean(so.job().Repository.Path),
			WorkDir: so.workspace.WorkDir(so.job().Repository.Path), Transcript: in.rec.Join(record.TranscriptFile),
		},
		Rooms: hooks.Rooms{Environ: in.env, BaseTree: so.boxes.BaseTree, Open: hookRoom(so.boxes), Changeable: so.boxes.Changeable()},
	}
	in.warnOfOpenHooks(so.boxes)
	return nil
}

// hookRoom opens the sandbox of hooks: they read the workspace and the base tree, and reach
// nothing. What setup commands installed may lead into the workspace, or be of a pull request.
func hookRoom(boxes *confine.Sandboxes) func(context.Context, *sandbox.Sandbox) (*sandbox.Sandbox, error) {
	return func(ctx context.Context, agent *sandbox.Sandbox) (*sandbox.Sandbox, error) {
		return boxes.OpenBeside(ctx, agent, confine.Beside{Name: "hooks", Workspace: confine.BesideRead, BaseTree: true, Bare: true})
	}
}

// warnOfOpenHooks tells of hooks that nothing confines, or keeps the agent's commands from.
func (in *invocation) warnOfOpenHooks(boxes *confine.Sandboxes) {
	if sandbox.Level(boxes.Reached().Level) == sandbox.LevelNone {
		in.rec.Warn("hooks_unconfined", "Nothing confines the hooks of this run, nor keeps commands of the agent from their files: policy.sandbox is danger-full-access.")
	}
}

// recordHooks lists the hooks of the run.
func (in *invocation) recordHooks(so *reached) error {
	if so.hooks == nil {
		return nil
	}
	return in.rec.Append(transcript.TypeHooks, hooks.Listed(so.hooks.All))
}

// startHooks asks whether the run may begin.
func (so *reached) startHooks(ctx context.Context) (err error) {
	if so.hooks == nil {
		return nil
	}
	base := so.workspace.Base()
	so.added, err = so.hooks.RunStart(ctx, hooks.Start{
		Source: so.task.Name, Title: so.task.Title, Text: so.task.Text, URL: so.task.URL, Base: base.Branch, SHA: base.SHA, Branch: so.task.Branch,
	})
	if err != nil {
		return err
	}
	return so.hooks.Halt()
}

// askOfDraft asks hooks of what is about to be published; nil where there are none.
func (in *invocation) askOfDraft(so *reached) func(context.Context, publish.Draft) error {
	if so.hooks == nil {
		return nil
	}
	return func(ctx context.Context, d publish.Draft) error {
		return so.hooks.Publishing(ctx, hooks.Draft{
			Base: d.Base.Branch, BaseSHA: d.Base.SHA, Branch: d.Branch, To: so.project.publish, As: "pull_request", Title: d.Title, Body: d.Body,
			Labels: d.Labels, Draft: d.Draft, Files: d.Files, Diff: d.Diff,
		})
	}
}

// askOfWords asks hooks of what is about to be said on an issue or pull request.
func (in *invocation) askOfWords(ctx context.Context, so *reached, object []byte) error {
	if so.hooks == nil {
		return nil
	}
	base := so.workspace.Base()
	return so.hooks.Publishing(ctx, hooks.Draft{
		Base: base.Branch, BaseSHA: base.SHA, To: so.project.publish, As: so.job().Publish.As, Title: so.task.Title, Body: string(object),
		Labels: []string{}, Files: []string{},
	})
}

// endHooks tells hooks how the run ended. One that refuses, or gives no clean answer, makes a
// failure of a run that was none; what was published stays.
func (in *invocation) endHooks(ctx context.Context, so *reached, stop *outcome.Stop) *outcome.Stop {
	if so.hooks == nil || !in.rec.Begun() {
		return stop
	}
	p := so.published()
	end := hooks.End{Outcome: string(stop.Outcome), Reason: stop.Reason, Message: stop.Message, ExitCode: stop.ExitCode(), Branch: p.Branch, Commit: p.Commit}
	if p.Pull != nil {
		end.URL = p.Pull.URL
	}
	if ctx.Err() != nil { // else each hook has its own time
		late, cancel := in.late(ctx)
		defer cancel()
		ctx = late
	}
	err := so.hooks.RunEnd(ctx, end)
	if err == nil {
		return stop
	}
	other := *outcome.Of(ctx, err)
	if stop.ExitCode() != 0 {
		in.rec.Warn("hook_run_end", "%s", other.Message)
		return stop
	}
	other.Message = in.rec.Redact(other.Message + " " + stop.Message)
	return &other
}

// hooked is what the record of a run says of its hooks.
func (h *history) hooked() hooks.Answers {
	answers := h.hooks
	answers.Uses = h.Hooks
	return answers
}

// sameOperators makes sure that a run goes on under the hooks of the operator that it began
// under.
func (h *history) sameOperators(now *hooks.Hooks) error {
	var all []hooks.Hook
	if now != nil {
		all = now.All
	}
	if h.listed.Hooks == nil && !h.worked() { // it was killed before it had hooks
		return nil
	}
	if slices.EqualFunc(hooks.Operators(hooks.Recorded(h.listed)), hooks.Operators(all), func(a, b hooks.Hook) bool {
		return a.Name == b.Name && a.SHA256 == b.SHA256
	}) {
		return nil
	}
	return outcome.Stopf(outcome.InvalidInput, "operator_file",
		"The run began under other hooks of the operator than there are now; resume it with the operator's file (--operator-file) that it was started with.")
}
