package runner

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/agent/hooks"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/publish/bundle"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// findHooks finds the hooks of the run, and where they run; nil for none. A resumed run goes on under the hooks
// of the operator that it began under.
func (r *runner) findHooks(ctx context.Context, p *place, boxes *confine.Sandboxes) (*hooks.Hooks, error) {
	if p.recorded != nil {
		return p.recorded.Answers.Hooks, nil
	}
	_, all, err := r.collectHooks(ctx, p.operator, p.job(), p.workspace)
	if err == nil && p.past != nil {
		err = p.past.SameOperators(all)
	}
	if err != nil || len(all) == 0 {
		return nil, err
	}
	found := &hooks.Hooks{
		All: all, Record: r.rec,
		Facts: hooks.Facts{
			RunID: r.rec.ID, Model: p.job().Model.Name, Root: p.workspace.Seen(), Path: path.Clean(p.job().Repository.Path),
			WorkDir: p.workspace.WorkDir(p.job().Repository.Path), Transcript: r.rec.Join(record.TranscriptFile),
		},
		Rooms: hooks.Rooms{Environ: r.env, BaseTree: boxes.BaseTree, Open: hookRoom(boxes), Changeable: boxes.Changeable()},
	}
	if p.past != nil {
		found.Answers = p.past.HookAnswers()
	}
	r.warnOfOpenHooks(boxes)
	return found, nil
}

// collectHooks returns the hooks of the operator's file, and all that a run has in a checkout.
func (r *runner) collectHooks(ctx context.Context, file string, j *job.Job, ws *workspace.Workspace) (operators map[string]job.Hook, all []hooks.Hook, err error) {
	if operators, err = settings.ReadOperatorFile(ctx, file, ws.Root()); err == nil {
		all, err = hooks.Collect(operators, j.Hooks, ws.Commit().ReadBase, r.env.Get("HOME"))
	}
	return operators, all, err
}

// hookRoom opens the sandbox of hooks: they read the workspace and the base tree, and reach
// nothing. What setup commands installed may lead into the workspace, or be of a pull request.
func hookRoom(boxes *confine.Sandboxes) func(context.Context, *sandbox.Sandbox) (*sandbox.Sandbox, error) {
	return func(ctx context.Context, agent *sandbox.Sandbox) (*sandbox.Sandbox, error) {
		return boxes.OpenBeside(ctx, agent, confine.Beside{Name: "hooks", Workspace: confine.BesideRead, BaseTree: true, Bare: true})
	}
}

// warnOfOpenHooks tells of hooks that nothing confines, or keeps the agent's commands from.
func (r *runner) warnOfOpenHooks(boxes *confine.Sandboxes) {
	if sandbox.Level(boxes.Reached().Level) == sandbox.LevelNone {
		r.rec.Warn("hooks_unconfined", "Nothing confines the hooks of this run or protects their files from commands: policy.sandbox is danger-full-access.")
	}
}

// recordHooks lists the hooks of the run.
func (r *runner) recordHooks(all *hooks.Hooks) error {
	if all == nil {
		return nil
	}
	return r.rec.Append(transcript.TypeHooks, hooks.Listed(all.All))
}

// startHooks asks whether the run may begin. added is text for the agent.
func (rd *ready) startHooks(ctx context.Context) (added string, err error) {
	if rd.hooks == nil {
		return "", nil
	}
	base := rd.workspace.Base()
	added, err = rd.hooks.RunStart(ctx, hooks.Start{
		Source: rd.task.Name, Title: rd.task.Title, Text: rd.task.Text, URL: rd.task.URL, Base: base.Branch, SHA: base.SHA, Branch: rd.task.Branch,
	})
	if err != nil {
		return added, err
	}
	return added, rd.hooks.Halt()
}

// askOfDraft asks hooks of what is about to be published; nil where there are none.
func askOfDraft(all *hooks.Hooks, to string) func(context.Context, publish.Draft) error {
	if all == nil {
		return nil
	}
	return func(ctx context.Context, d publish.Draft) error {
		return all.Publishing(ctx, hooks.Draft{
			Base: d.Base.Branch, BaseSHA: d.Base.SHA, Branch: d.Branch, To: to, As: "pull_request", Title: d.Title, Body: d.Body,
			Labels: d.Labels, Draft: d.Draft, Files: d.Files, Diff: d.Diff,
		})
	}
}

// changeFolder of the run directory has the tree of a bundle's change, for hooks to see.
const changeFolder = record.StateFolder + "/change"

// hooksOfBundle returns the hooks that are asked before a bundle is published: those of the base commit, of the
// job file here and of the operator. What the bundle says of hooks counts for nothing.
func (r *runner) hooksOfBundle(ctx context.Context, p *place, b bundle.Bundle, change *gitops.ChangeSet, base gitops.Base) (*hooks.Hooks, error) {
	operators, all, err := r.collectHooks(ctx, p.operator, p.job(), p.workspace)
	if err == nil {
		err = operatorsGiven(b.View.Hooks, operators)
	}
	all = slices.DeleteFunc(all, func(h hooks.Hook) bool { return h.On != job.OnPrePublish })
	if err != nil || len(all) == 0 {
		return nil, err
	}
	boxes, err := r.boxesOfBundle(ctx, p, change, base)
	if err != nil {
		return nil, err
	}
	folder := path.Clean(p.job().Repository.Path)
	r.warnOfOpenHooks(boxes)
	return &hooks.Hooks{
		All: all, Record: r.rec,
		Facts: hooks.Facts{
			RunID: r.rec.ID, Model: p.job().Model.Name, Root: boxes.Root, Path: folder, WorkDir: path.Join(boxes.Root, folder), Transcript: r.rec.Join(record.TranscriptFile),
		},
		Rooms: hooks.Rooms{Environ: r.env, BaseTree: boxes.BaseTree, Open: hookRoom(boxes), Changeable: append(boxes.Changeable(), p.workspace.Root())},
	}, nil
}

// operatorsGiven makes sure that a bundle whose run had hooks of the operator before publishing is
// not published without them. They may have changed: the machine is another.
func operatorsGiven(had []transcript.HookUse, now map[string]job.Hook) error {
	for _, use := range had {
		name, is := strings.CutPrefix(use.Name, hooks.OperatorPrefix)
		if is && use.On == job.OnPrePublish && now[name].On != job.OnPrePublish {
			return outcome.Stopf(outcome.InvalidInput, "operator_file",
				"The run had the hook %.100q on pre_publish, which is missing now; publish with the operator's file (--operator-file).", use.Name)
		}
	}
	return nil
}

// boxesOfBundle opens sandboxes that see a fresh tree of a bundle's change. Nobody works there,
// and nothing of the job but its rules on files counts.
func (r *runner) boxesOfBundle(ctx context.Context, p *place, change *gitops.ChangeSet, base gitops.Base) (*confine.Sandboxes, error) {
	for _, name := range []string{changeFolder, confine.ScratchFolder} { // which whoever made the bundle may have filled
		r.rec.Remove(name)
	}
	tree := r.rec.Join(changeFolder)
	if err := p.workspace.Checkout().Materialise(ctx, gitops.MaterialiseOptions{Dir: tree, Shown: gitops.Shown{Tree: change.Tree, Base: base}}); err != nil {
		return nil, err
	}
	j := *p.job()
	j.Services, j.MCPServers, j.Policy.Secrets, j.Policy.Network = nil, nil, nil, job.Network{Mode: "none"}
	boxes := &confine.Sandboxes{
		Record: r.rec, Environ: r.env, Job: &j, Root: tree, Dir: tree, BaseTree: p.workspace.BaseTree(),
	}
	return boxes, boxes.Confine(ctx)
}
