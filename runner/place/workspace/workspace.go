package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/remote"
	"github.com/agent-ci/agent-ci/internal/pathname"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// Workspace is the checkout of a run, or a plain folder in which commands run that
// belong to no run. It is used by one goroutine at a time.
type Workspace struct {
	rec      *record.Record
	root     string
	checkout *gitops.Checkout // nil for a plain folder
	cloned   bool
	name     string
	base     gitops.Base      // zero until one is set
	from     *remote.Remote   // that the run cloned; nil where it did not, or a run goes on
	shared   bool             // others may work in the checkout, too
	landed   bool             // the checkout has the change, or a part of it, out of the work tree
	snapshot *gitops.Snapshot // of the checkout; nil before UseTree
	begun    *gitops.Snapshot // of the work tree, on the base
	worked   bool             // commands may have changed something
	kept     bool             // the run directory has the work as it is

	tree    Tree  // nil before commands can be confined
	left    bool  // it alone has the work
	keptOut error // what KeptOut says
	half    bool  // the checkout has a part of the change, which could not be taken out again
	warned  bool  // of what others changed in the checkout

	hidden *grants.Secrets // from commands, where they may write; nil until LeaveOut
	moving bool            // the work of a run that goes on is not, or not all, in the work tree yet
}

// Options say which checkout is opened.
type Options struct {
	Dir    string // the checkout, or a folder in it
	Path   string // the PATH that the git program is looked for on
	Forge  string // the address of its pages
	Cloned bool   // by the run itself
	Name   string // for a person; empty for "the checkout"
	Fresh  bool   // the files are not there yet

	// OpenFilter opens places for filters of git; nil where none runs. Filters are those of the
	// repository's own configuration that run, with what each may read.
	OpenFilter gitops.OpenFilter
	Filters    map[string][]string
}

// Open opens a checkout. Its base is set by StartOn. The caller closes it.
func Open(ctx context.Context, rec *record.Record, o Options) (*Workspace, error) {
	state, err := rec.MakeFolder(record.StateFolder)
	if err != nil {
		return nil, err
	}
	checkout, err := gitops.Open(ctx, gitops.Options{Dir: o.Dir, Git: FindGit(o.Path, o.Dir), State: state, Forge: o.Forge, Mark: holdMark(rec), OpenFilter: o.OpenFilter, LFS: rec.Join(record.LFSFolder), Fresh: o.Fresh})
	if err != nil {
		return nil, err
	}
	checkout.AllowFilters(o.Filters)
	return &Workspace{rec: rec, root: checkout.Root(), checkout: checkout, cloned: o.Cloned, name: cmp.Or(o.Name, ownCheckout)}, nil
}

// Folder is a workspace without git.
func Folder(rec *record.Record, dir string) *Workspace { return &Workspace{rec: rec, root: dir} }

// Close lets go of the checkout.
func (w *Workspace) Close() error {
	if w.checkout == nil {
		return nil
	}
	return w.checkout.Close()
}

// Checkout is what git knows of the workspace; nil for a plain folder.
func (w *Workspace) Checkout() *gitops.Checkout { return w.checkout }

// Root is the checkout, or the plain folder, absolute.
func (w *Workspace) Root() string { return w.root }

// Seen is the path at which commands find the work tree.
func (w *Workspace) Seen() string {
	if w.tree == nil {
		return w.root
	}
	return w.tree.Seen()
}

// SeenElsewhere is Seen; empty for the path of the checkout.
func (w *Workspace) SeenElsewhere() string {
	if seen := w.Seen(); seen != w.root {
		return seen
	}
	return ""
}

// WorkDir is a folder of the work tree as commands find it, absolute: path is repository.path.
func (w *Workspace) WorkDir(path string) string {
	return filepath.Join(w.Seen(), filepath.FromSlash(path))
}

// Cloned says whether the run made the checkout itself.
func (w *Workspace) Cloned() bool { return w.cloned }

// ownCheckout is the name of a checkout that the run did not make.
const ownCheckout = "the checkout"

// Name is the workspace for a person, who knows their own checkout.
func (w *Workspace) Name() string {
	if w.cloned {
		return w.root
	}
	return w.name
}

// Place is Name, or the path of a checkout that the current directory is not in. It is for messages
// after which a person has to find the checkout.
func (w *Workspace) Place() string {
	if w.Name() != ownCheckout {
		return w.Name()
	}
	here, err := os.Getwd()
	if err == nil {
		here, err = filepath.EvalSymlinks(here)
	}
	if err != nil {
		return w.root
	}
	if !pathname.Within(here, w.root) {
		return w.root
	}
	return ownCheckout
}

// On says whether a branch was checked out before the run.
func (w *Workspace) On(branch string) bool { return w.checkout != nil && w.checkout.On(branch) }

// Base is what the work starts from; the zero Base before StartOn.
func (w *Workspace) Base() gitops.Base { return w.base }

// BaseName is a base for a person.
func BaseName(b gitops.Base) string {
	if b.Branch == "" {
		return "commit " + gitops.Short(b.SHA)
	}
	return b.Branch
}

// Commit is the base commit for who reads what configures a run.
func (w *Workspace) Commit() settings.Commit {
	return settings.Commit{Checkout: w.checkout, SHA: w.base.SHA}
}

// StartOn sets the first base: a branch, or where HEAD stands.
func (w *Workspace) StartOn(ctx context.Context, branch string) error {
	return w.SetBase(ctx, gitops.BaseSpec{Branch: branch})
}

// SetBase sets the base that the work starts from. The checkout stays as it is.
func (w *Workspace) SetBase(ctx context.Context, spec gitops.BaseSpec) (err error) {
	base, err := w.checkout.SetBase(spec)
	if err != nil {
		return err
	}
	w.base = base
	return w.fillLFS(ctx)
}

// based says whether the base is another commit than the checkout has.
func (w *Workspace) based() bool { return w.base.Tree != w.checkout.Start().Tree }

// Worked says whether commands may have changed something.
func (w *Workspace) Worked() bool { return w.worked }

// TakeSnapshot remembers the work tree as it is before the first turn.
func (w *Workspace) TakeSnapshot(ctx context.Context) error {
	w.worked = true
	_, err := w.takeSetup(ctx)
	return errors.Join(err, w.giveGit(ctx), w.markSnapshot())
}

func (w *Workspace) lookAtCheckout(ctx context.Context) (err error) {
	if w.snapshot, err = w.checkout.Snapshot(ctx); err != nil {
		return fmt.Errorf("look at the checkout before the first turn: %w", err)
	}
	return nil
}

func (w *Workspace) markSnapshot() error {
	raw, err := w.checkout.Mark(w.snapshot, w.begun)
	if err != nil {
		return err
	}
	return w.rec.Write(markFile, raw)
}

// markFile holds what gitops must know to go on with the checkout.
const markFile = record.StateFolder + "/checkout.json"

// untrackedFolder holds what was not tracked before the first turn.
const untrackedFolder = record.StateFolder + "/untracked"

// UntrackedDir is the folder of what was not tracked before the first turn.
func (w *Workspace) UntrackedDir() string { return w.rec.Join(untrackedFolder) }

// KeepUntracked copies what was not tracked before the first turn, for checks that
// run on a fresh tree.
func (w *Workspace) KeepUntracked(ctx context.Context) error {
	if !w.tree.Private() {
		return nil // checks find them where they are
	}
	err := w.in(ctx, OfAgent, func(c *gitops.Checkout, _ *os.Root) error { return c.KeepUntracked(ctx, w.begun, w.UntrackedDir()) })
	if err != nil {
		return fmt.Errorf("keep the untracked files for verification: %w", err)
	}
	return nil
}

// UnchangedBySetup makes sure that setup commands left tracked files alone.
func (w *Workspace) UnchangedBySetup(ctx context.Context) error {
	dirty, err := w.takeSetup(ctx)
	if err != nil {
		return fmt.Errorf("look for what the setup commands changed: %w", err)
	}
	if len(dirty) == 0 {
		return nil
	}
	return outcome.Stopf(outcome.InvalidInput, "setup_changed_files",
		"The setup commands changed tracked files (%s), which would count as the agent's work; commit these changes, or let the commands leave the files alone.",
		markdown.SomeFiles(dirty))
}

// FilterFailure is the outcome of a filter of git's that may not run, or failed; nil for another error.
// Once commands have run, it may be that the filter does not like what they wrote.
func (w *Workspace) FilterFailure(err error) *outcome.Stop {
	failed, is := errors.AsType[*gitops.FilterError](err)
	stop, known := errors.AsType[*outcome.Stop](err)
	switch {
	case !is || known && stop.Outcome != outcome.InternalError:
		return nil
	case w.Worked():
		return filterStop(outcome.ExtensionFailed, failed, err)
	}
	return filterStop(outcome.InvalidInput, failed, err)
}

func filterStop(ends outcome.Outcome, failed *gitops.FilterError, err error) *outcome.Stop {
	return outcome.Stopf(ends, "git_filter", "%s.", outcome.Sentence(failed.Error())).Because(err)
}

// CheckoutFailure is the outcome of a checkout that cannot be worked in; nil for no
// error.
func CheckoutFailure(err error) error {
	var damaged *gitops.ObjectError
	var used *gitops.InUseError
	var filter *gitops.FilterError
	var git *gitops.GitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &damaged):
		return damagedRepository(damaged, err)
	case errors.As(err, &filter):
		return filterStop(outcome.InvalidInput, filter, err)
	case errors.As(err, &git):
		return outcome.Stopf(outcome.InvalidInput, "no_git", "%s.", outcome.Sentence(git.Error())).Because(err)
	case errors.As(err, &used):
		return outcome.Stopf(outcome.InvalidInput, "checkout_in_use", "%s.", outcome.Sentence(used.Error())).Because(err)
	}
	for _, known := range []struct {
		is     bool
		reason string
	}{
		{errors.Is(err, gitops.ErrNotRepository), "no_checkout"},
		{errors.Is(err, gitops.ErrBare), "unsupported_checkout"},
		{errors.Is(err, gitops.ErrNoCommit), "no_commit"},
		{errors.As(err, new(*gitops.UnsupportedError)), "unsupported_checkout"},
		{errors.As(err, new(*gitops.UnknownBaseError)), "unknown_base"},
		{errors.As(err, new(*gitops.ObstructedError)), "dirty_checkout"},
	} {
		if known.is {
			return outcome.Stopf(outcome.InvalidInput, known.reason, "%s.", outcome.Sentence(err.Error())).Because(err)
		}
	}
	return fmt.Errorf("open the checkout: %w", err)
}

func damagedRepository(damaged *gitops.ObjectError, err error) *outcome.Stop {
	return outcome.Stopf(outcome.InvalidInput, "damaged_repository", "%s.", outcome.Sentence(damaged.Error())).Because(err)
}

// ObjectFailure is the outcome of an object that is not what its id says; nil for any other error.
func ObjectFailure(err error) *outcome.Stop {
	if damaged := (*gitops.ObjectError)(nil); errors.As(err, &damaged) {
		return damagedRepository(damaged, err)
	}
	return nil
}
