package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// CheckoutNeeds lists a run's requirements of its checkout.
type CheckoutNeeds struct {
	Base           BaseBranch
	Path           string // repository.path
	ExpectsChanges bool   // the run is expected to change files
	ReceivesChange bool   // the change is to be in the checkout at the end of the run
	SharesCheckout bool   // other runs may use it too; the run changes nothing there before its end
}

// BaseBranch restricts the branch that a change is based on.
type BaseBranch struct {
	Configured bool   // the job names the base, and that base is set
	TaskBranch string // the branch of this task's runs; empty if the job names another one
	NoneNeeded bool   // the change goes to no branch
	// ForgeDefault asks the forge for the default base branch; nil without a forge.
	ForgeDefault func(context.Context) (string, error)
}

// Prepare returns an error unless the run can work in the checkout: nobody else uses it, it is
// clean, it is on its base and it is writable.
func (w *Workspace) Prepare(ctx context.Context, p CheckoutNeeds) error {
	if err := w.claimCheckout(ctx, p.SharesCheckout); err != nil {
		return CheckoutFailure(err)
	}
	err := w.findBaseBranch(ctx, p.Base)
	movesHead := !p.Base.NoneNeeded || w.base.SHA != w.checkout.StartCommit().SHA
	if err := cmp.Or(w.requireFinishedOperation(p, movesHead), err); err != nil { // the operation first: a rebase is on no branch, so there is an error, too
		return err
	}
	dirty, err := w.dirtyFiles(ctx)
	if err != nil {
		return err
	}
	if dirty != "" {
		return outcome.Stopf(outcome.InvalidInput, "dirty_checkout",
			"The checkout has uncommitted changes (%s); commit or stash them, so that the change contains only the agent's work.", dirty)
	}
	if p.ExpectsChanges { // in a checkout that is not writable, the agent would seem to have nothing to do
		if err := w.requireWritable(movesHead); err != nil {
			return err
		}
	}
	return w.RequireFolder(p.Path)
}

// requireWritable returns an error if no change can come into the checkout, whatever its files are. movesHead means
// that HEAD moves with the change.
func (w *Workspace) requireWritable(movesHead bool) error {
	path, err := w.checkout.Unwritable(movesHead)
	if err == nil {
		return nil
	}
	return outcome.Stopf(outcome.InvalidInput, "checkout_access",
		"The checkout cannot be written (%s: %v); run as the user that it belongs to, or give a checkout that can be written.", path, err).Because(err)
}

// claimCheckout claims the checkout for this run alone, or with shared, together with other runs that share it.
// It returns an error if this run and another user of the checkout could disturb each other.
func (w *Workspace) claimCheckout(ctx context.Context, shared bool) error {
	w.shared = shared
	var err error
	if shared {
		err = w.checkout.Share(ctx)
	} else {
		err = w.checkout.Claim()
	}
	if err := errors.Join(err, w.checkout.RequireIdle(ctx)); err != nil {
		return err
	}
	moved, err := w.checkout.MovedByOthers(ctx)
	if err == nil && moved { // the job was read from the earlier state
		err = &gitops.InUseError{Root: w.root, Remedy: "another run ended in it at this moment, or somebody switched it or committed; start the run again"}
	}
	return err
}

// requireFinishedOperation returns an error if the change would come into the middle of a merge, a rebase or
// another operation of git. git status lists no file during some of them. movesHead means that HEAD moves with the
// change.
func (w *Workspace) requireFinishedOperation(p CheckoutNeeds, movesHead bool) error {
	unfinished := w.operationInTheWay(movesHead)
	if unfinished.Name == "" || !p.ExpectsChanges || !p.ReceivesChange {
		return nil
	}
	return outcome.Stopf(outcome.InvalidInput, "operation_in_progress",
		"%s is in progress in the checkout, and the change would become mixed up with it; finish it, or give it up with %s.", outcome.Sentence(unfinished.Name), unfinished.Abort)
}

// operationInTheWay returns the unfinished operation of git that the change must not come into, or a zero
// Operation. movesHead means that HEAD moves with the change. Otherwise only the next commit matters, for
// example after a rebase stopped for an edit.
func (w *Workspace) operationInTheWay(movesHead bool) gitops.Operation {
	unfinished := w.checkout.UnfinishedOperation()
	if !movesHead && !unfinished.TakesCommit {
		return gitops.Operation{}
	}
	return unfinished
}

// dirtyFiles returns the names of files with uncommitted changes for a message, or "". It keeps the
// snapshot for UseTree.
func (w *Workspace) dirtyFiles(ctx context.Context) (string, error) {
	seen, err := w.checkout.Snapshot(ctx)
	if unsupported := (*gitops.UnsupportedError)(nil); errors.As(err, &unsupported) {
		return "", CheckoutFailure(unsupported)
	}
	if err != nil {
		return "", fmt.Errorf("look for uncommitted changes: %w", err)
	}
	w.snapshots.prepared = seen
	return markdown.SomeFiles(seen.Dirty()), nil
}

// RequireFolder returns an error unless path is a folder in the base. path is the job's repository.path, which is
// "." for the root. If the checkout has the base's files, RequireFolder looks in the checkout. Otherwise it looks
// in git, and accepts a link, because only the checkout shows where a link leads.
func (w *Workspace) RequireFolder(path string) error {
	if w.hasOtherBase() {
		e, err := w.checkout.BaseEntry(path)
		if err != nil {
			return err
		}
		if path == "." || e.Kind == gitops.BaseFolder || e.Kind == gitops.BaseLink {
			return nil
		}
	} else if info, err := w.statIn(path); err == nil && info.IsDir() {
		return nil
	}
	return outcome.Stopf(outcome.InvalidInput, "no_such_path",
		"repository.path is %s, which is no folder on %s; correct the path.", path, BaseName(w.base))
}

func (w *Workspace) statIn(path string) (fs.FileInfo, error) {
	root, err := os.OpenRoot(w.root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.Stat(filepath.FromSlash(path))
}

// findBaseBranch returns an error unless the base is a branch fit for changes. A detached HEAD is
// unfit, and so is the branch of an earlier run. If there is a default base, it sets that instead.
func (w *Workspace) findBaseBranch(ctx context.Context, wanted BaseBranch) error {
	earlier, err := w.earlierRun(ctx, wanted)
	if err != nil {
		return err
	}
	if earlier == nil && (w.base.Branch != "" || wanted.NoneNeeded) {
		return nil
	}
	branch, err := w.defaultBase(ctx, earlier, wanted)
	if err != nil {
		return err
	}
	switch {
	case branch != "":
		return CheckoutFailure(w.SetBase(ctx, gitops.BaseSpec{Branch: branch}))
	case earlier != nil:
		return outcome.Stopf(outcome.InvalidInput, "no_base",
			"The checkout is on %s, the branch of an earlier run; check out the branch to build on, or set repository.base.", w.base.Branch)
	}
	return outcome.Stopf(outcome.InvalidInput, "no_base",
		"The checkout is on no branch (detached HEAD at %s); check out a branch, or set repository.base.", clip.SHA(w.base.SHA))
}

// earlierRun returns the commit at the tip of the checked out branch if an earlier run made it, or
// nil.
func (w *Workspace) earlierRun(ctx context.Context, wanted BaseBranch) (*forge.Commit, error) {
	if w.base.Branch == "" || wanted.Configured {
		return nil, nil
	}
	tip, err := w.checkout.Tip(ctx, w.base.Branch)
	if err != nil {
		return nil, fmt.Errorf("look at branch %s: %w", w.base.Branch, err)
	}
	if tip != nil && (tip.MadeByRun() || w.base.Branch == wanted.TaskBranch) {
		return tip, nil
	}
	return nil, nil
}

// defaultBase returns the base branch to use instead, or "". It is the forge's default. Without a
// forge, it is the only local branch at the earlier run's base, or else origin's default.
func (w *Workspace) defaultBase(ctx context.Context, earlier *forge.Commit, wanted BaseBranch) (string, error) {
	if wanted.ForgeDefault != nil {
		return wanted.ForgeDefault(ctx)
	}
	if earlier == nil {
		return "", nil
	}
	branches, err := w.checkout.BranchesAt(earlier.Trailer(forge.TrailerBase))
	if err != nil {
		return "", err
	}
	if len(branches) == 1 {
		return branches[0], nil
	}
	return w.checkout.DefaultBranch(), nil
}
