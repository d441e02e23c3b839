package runner

import (
	"context"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/remote"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/workspace"
)

// ws is the workspace with what stages wrote of it in the fields of the run.
func (r *run) ws() *workspace.Workspace {
	if r.space == nil {
		r.space = workspace.Folder(r.rec, r.options.Dir)
	}
	r.space.Adopt(workspace.State{Checkout: r.checkout, Cloned: r.cloned, Base: r.base, BegunAt: r.begunAt, Snapshot: r.snapshot, Kept: r.kept})
	return r.space
}

// mirror gives what the workspace knows to the fields of the run.
func (r *run) mirror() {
	s := r.space.State()
	r.checkout, r.cloned, r.base, r.begunAt, r.snapshot, r.kept = s.Checkout, s.Cloned, s.Base, s.BegunAt, s.Snapshot, s.Kept
}

// inWorkspace does something with the workspace that changes what it knows.
func (r *run) inWorkspace(do func(*workspace.Workspace) error) error {
	w := r.ws()
	defer r.mirror()
	return do(w)
}

func (r *run) openCheckout(ctx context.Context, dir string) error {
	opened, err := workspace.Open(ctx, r.rec, workspace.Options{Dir: dir, Path: r.env.Get("PATH"), Cloned: r.cloned})
	if err != nil {
		return err
	}
	base := r.base
	r.space = opened
	r.mirror()
	r.base = base
	return r.inWorkspace(func(w *workspace.Workspace) error { return w.StartOn(ctx, r.eventBase()) })
}

func (r *run) chooseBase(ctx context.Context, branch string) error {
	return r.inWorkspace(func(w *workspace.Workspace) error { return w.SetBase(ctx, gitops.BaseSpec{Branch: branch}) })
}

func (r *run) useBase() error {
	was := r.history.Workspace
	return workspace.CheckoutFailure(r.inWorkspace(func(w *workspace.Workspace) error {
		return w.UseBase(gitops.BaseSpec{Branch: was.Base, SHA: was.BaseSHA})
	}))
}

func (r *run) takeSnapshot(ctx context.Context) error {
	return r.inWorkspace(func(w *workspace.Workspace) error { return w.TakeSnapshot(ctx) })
}

// keepUntracked keeps what is not tracked before the first turn for checks that
// run on a fresh tree.
func (r *run) keepUntracked(ctx context.Context) error {
	if len(r.job.Verify) == 0 || !r.verifiesClean() {
		return nil
	}
	return r.ws().KeepUntracked(ctx)
}

func (r *run) takeChanges(ctx context.Context) error {
	return r.inWorkspace(func(w *workspace.Workspace) error {
		change, err := w.TakeChange(ctx, r.withoutDropped)
		if change != nil {
			r.changes = change
		}
		return err
	})
}

func (r *run) collected(ctx context.Context) (*gitops.ChangeSet, error) {
	err := r.collect(ctx)
	return r.changes, err
}

// checkoutName is the checkout for a person, who looks for nothing in it after a
// replay.
func (r *run) checkoutName() string {
	if !r.cloned && r.replayed() != nil {
		return "the replay's tree"
	}
	return r.ws().Name()
}

func (r *run) markGit(ctx context.Context) error {
	return r.ws().MarkGit(ctx, sandbox.Level(r.confined.Level))
}

func (r *run) objectFailure(err error) *outcome.Stop {
	return r.ws().ObjectFailure(err, sandbox.Level(r.confined.Level), r.history != nil && r.history.worked())
}

func (r *run) findGit(dir string) string { return workspace.FindGit(r.env.Get("PATH"), dir) }
func (r *run) baseName() string          { return workspace.BaseName(r.base) }
func (r *run) workDir() string           { return r.ws().WorkDir(r.job.Repository.Path) }

func (r *run) warnOfOwner()                                    { r.ws().WarnOfOwner(sandbox.Level(r.confined.Level)) }
func (r *run) gitUnchanged(ctx context.Context) error          { return r.ws().GitUnchanged(ctx) }
func (r *run) restoreCheckout(ctx context.Context) error       { return r.ws().Restore(ctx, r.inCheckout()) }
func (r *run) unchangedBy(ctx context.Context, c string) error { return r.ws().UnchangedBy(ctx, c) }

// unreadable is the outcome of a folder that commands of the run took the right to read.
func unreadable(folder string, err error) *outcome.Stop {
	return outcome.Stopf(outcome.PolicyViolation, "change",
		"Commands of the run took the right to read %s (%v); have it left as it is.", folder, outcome.RootCause(err)).Because(err)
}

func outsideCheckout(path, dir string) error { return workspace.OutsideCheckout(path, dir) }

func checkoutFailure(err error) error { return workspace.CheckoutFailure(err) }

func checkoutFailureOrNil(err error) error { return workspace.CheckoutFailure(err) }

func remoteFailure(what string, err error) error { return workspace.RemoteFailure(what, err) }

func workPack(d *record.Directory) string                     { return workspace.WorkPack(d) }
func changeFiles(c *gitops.ChangeSet) []transcript.ChangeFile { return workspace.ChangeFiles(c) }
func nameOf(b gitops.Base) string                             { return workspace.BaseName(b) }
func some(paths []string) string                              { return markdown.SomeFiles(paths) }
func (r *run) remote() remote.Remote {
	return remote.Remote{URL: r.repo.gitURL(), Token: r.env.Token()}
}
