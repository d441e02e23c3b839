package runner

import (
	"context"

	"github.com/agent-ci/agent-ci/policy/sandbox/grants"

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
	r.space.Adopt(workspace.State{Checkout: r.checkout, Cloned: r.cloned, Base: r.base, BegunAt: r.begunAt, Snapshot: r.snapshot, Kept: r.kept, Hidden: r.hidden, Moving: r.movesIn})
	return r.space
}

// mirror gives what the workspace knows to the fields of the run.
func (r *run) mirror() {
	s := r.space.State()
	r.checkout, r.cloned, r.base, r.begunAt, r.snapshot, r.kept, r.hidden, r.movesIn = s.Checkout, s.Cloned, s.Base, s.BegunAt, s.Snapshot, s.Kept, s.Hidden, s.Moving
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
	base, hidden := r.base, r.hidden
	r.space = opened
	r.mirror()
	r.base, r.hidden = base, hidden
	return r.inWorkspace(func(w *workspace.Workspace) error { return w.StartOn(ctx, r.eventBase()) })
}

func (r *run) chooseBase(ctx context.Context, branch string) error {
	return r.inWorkspace(func(w *workspace.Workspace) error { return w.SetBase(ctx, gitops.BaseSpec{Branch: branch}) })
}

// resumeCheckout opens the checkout. Where the work so far does not stand in it,
// moveIn puts it there.
func (r *run) resumeCheckout(ctx context.Context) error {
	h := r.history
	opened, found, err := workspace.Resume(ctx, r.rec, workspace.Options{Dir: r.options.Dir, Path: r.env.Get("PATH")}, workspace.Earlier{
		Workspace: h.Workspace, Worked: h.worked(), Ended: h.Finished != nil, Stays: r.publishMode() == publishNone, OnPull: h.onPull(),
	})
	if err != nil {
		return err
	}
	r.space = opened
	r.mirror()
	r.found = found
	return nil
}

// moveIn makes the checkout what it was when the run was stopped, as far as that
// can be done: the setup commands are run again, and the work is put in.
func (r *run) moveIn(ctx context.Context) error {
	untracked := len(r.job.Verify) > 0 && r.verifiesClean()
	if r.found.Away == "" {
		if !untracked {
			return nil
		}
		return r.ws().KeepUntrackedAgain(ctx)
	}
	if err := r.setUp(ctx); err != nil {
		return err
	}
	return r.inWorkspace(func(w *workspace.Workspace) error {
		return w.MoveIn(ctx, workspace.Move{Away: r.found.Away, Change: r.history.Work.Change, ApplyPatches: r.conversation.ApplyPatches, Untracked: untracked})
	})
}

func (r *run) dropState(o outcome.Outcome) {
	r.ws().DropState(r.stopped(o) && r.publishMode() == publishNone && !r.changes.Empty())
}

// salvage keeps the work of a run that was stopped, and tells what became of it.
func (r *run) salvage(ctx context.Context, stop *outcome.Stop) string {
	published := r.published.commit != ""
	note := r.ws().Salvage(ctx, workspace.Ending{
		Changed: stop.Outcome == outcome.Changed, Published: published, Stays: r.publishMode() == publishNone, Change: r.inCheckout(),
		Take: func(ctx context.Context) (*gitops.ChangeSet, error) {
			err := r.takeChanges(ctx)
			return r.inCheckout(), err
		},
	})
	if note == "" && published {
		return r.publishedSoFar(stop)
	}
	return note
}

func (r *run) useHidden(found *grants.Secrets) error {
	return r.inWorkspace(func(w *workspace.Workspace) error {
		_, err := w.LeaveOut(found)
		return err
	})
}

func (r *run) findWorkDir() error { return r.ws().HasFolder(r.job.Repository.Path) }

func (r *run) takeChanges(ctx context.Context) error {
	return r.inWorkspace(func(w *workspace.Workspace) error {
		change, err := w.TakeChange(ctx, r.withoutDropped)
		if change != nil {
			r.changes = change
		}
		return err
	})
}

const (
	keptUntracked = record.StateFolder + "/untracked"
	awayFile      = record.StateFolder + "/away"
	inChange      = workspace.InChange
	inPatches     = workspace.InPatches
)

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
