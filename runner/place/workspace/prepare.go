package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// CheckoutNeeds lists a run's requirements of its checkout.
type CheckoutNeeds struct {
	Base           BaseBranch
	Path           string // repository.path
	ExpectsChanges bool   // the run is expected to change files
	SharesCheckout bool   // other runs may use it too; the run changes nothing there before its end
}

// BaseBranch restricts the base branch of a change.
type BaseBranch struct {
	Configured bool   // the job names the base, and it is the one that is set
	TaskBranch string // that runs of this task make; empty where the job names another
	NoneNeeded bool   // the change goes to no branch
	// ForgeDefault asks the forge for the default base branch; nil without a forge.
	ForgeDefault func(context.Context) (string, error)
}

// Prepare verifies that the run can work in the checkout: it is free, clean, on its base and
// writable.
func (w *Workspace) Prepare(ctx context.Context, p CheckoutNeeds) error {
	if err := w.claimCheckout(ctx, p.SharesCheckout); err != nil {
		return CheckoutFailure(err)
	}
	if err := w.findBaseBranch(ctx, p.Base); err != nil {
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
	if err := w.requireWritable(p.ExpectsChanges); err != nil {
		return err
	}
	return w.RequireFolder(p.Path)
}

// claimCheckout verifies that nobody in the checkout would disturb this run or be disturbed.
func (w *Workspace) claimCheckout(ctx context.Context, shared bool) error {
	lock := func() error { return w.checkout.Claim() }
	if w.shared = shared; shared {
		lock = func() error { return w.checkout.Share(ctx) }
	}
	if err := errors.Join(lock(), w.checkout.RequireIdle(ctx)); err != nil {
		return err
	}
	moved, err := w.checkout.MovedByOthers(ctx)
	if err == nil && moved { // what the run is to do was read before
		err = &gitops.InUseError{Root: w.root, Remedy: "another run ended in it at this moment, or somebody switched it or committed; start the run again"}
	}
	return err
}

// dirtyFiles names files with uncommitted changes, for a message; empty for none. What it sees of the checkout
// serves UseTree, too.
func (w *Workspace) dirtyFiles(ctx context.Context) (string, error) {
	seen, err := w.checkout.Snapshot(ctx)
	if err != nil {
		return "", fmt.Errorf("look for uncommitted changes: %w", err)
	}
	w.prepared = seen
	return markdown.SomeFiles(seen.Dirty()), nil
}

// requireWritable verifies that an expected change can be made and committed. An agent unable to change
// anything would look as if it had nothing to do.
func (w *Workspace) requireWritable(expected bool) error {
	if !expected {
		return nil
	}
	path, err := w.checkout.Unwritable()
	if err == nil {
		return nil
	}
	return outcome.Stopf(outcome.InvalidInput, "checkout_access",
		"The checkout cannot be written (%s: %v); run as the user that it belongs to, or give a checkout that can be written.", path, err).Because(err)
}

// RequireFolder makes sure that repository.path is a folder of the base, or of the checkout that has it.
func (w *Workspace) RequireFolder(path string) error {
	if w.hasOtherBase() {
		e, err := w.checkout.BaseEntry(path)
		if err != nil || path == "." || e.Kind == gitops.BaseFolder || e.Kind == gitops.BaseLink { // which leads in the checkout alone
			return err
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

// findBaseBranch verifies that the base is a branch fit for changes: no detached HEAD, and not an
// earlier run's branch left checked out.
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
		"The checkout is on no branch (detached HEAD at %s); check out a branch, or set repository.base.", gitops.Short(w.base.SHA))
}

// earlierRun returns the checked out commit of an earlier run, or nil.
func (w *Workspace) earlierRun(ctx context.Context, wanted BaseBranch) (*forge.Commit, error) {
	if w.base.Branch == "" || wanted.Configured {
		return nil, nil
	}
	tip, err := w.checkout.Tip(ctx, w.base.Branch)
	if err != nil {
		return nil, fmt.Errorf("look at branch %s: %w", w.base.Branch, err)
	}
	if tip != nil && (tip.Ours() || w.base.Branch == wanted.TaskBranch) {
		return tip, nil
	}
	return nil, nil
}

// defaultBase returns the default base branch: the forge's, else the earlier run's only possible one
// here, else origin's default, or "".
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
