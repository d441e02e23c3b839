package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/remote"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/filetime"
	"github.com/agent-ci/agent-ci/policy/pathname"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// Workspace is a run's checkout, or a plain folder for commands outside runs. Only one goroutine
// may use it at a time.
type Workspace struct {
	rec         *record.Record
	root        string
	checkout    *gitops.Checkout // nil for a plain folder
	cloned      bool
	name        string
	base        gitops.Base    // zero until one is set
	cloneSource *remote.Remote // nil if the run did not clone, or was resumed
	shared      bool           // others may work in the checkout, too
	snapshots   snapshots
	tree        Tree            // nil before commands can be confined
	hiddenFiles *grants.Secrets // files hidden from commands in writable folders; nil before ExcludeSecrets
	delivery    delivery

	commandsRan bool
	workState
}

// workState says where the work of the run is complete.
type workState struct {
	saved          bool // the run directory has the current work
	workOnlyInTree bool // the run directory lacks work of the tree
	workPending    bool // a resumed run's work is not completely in the work tree
}

// snapshots are states from before the agent's work.
type snapshots struct {
	prepared *gitops.Snapshot // the checkout in Prepare, until UseTree; else nil
	checkout *gitops.Snapshot // the checkout in UseTree; nil before
	work     *gitops.Snapshot // the work tree, on the base
}

// delivery tells how much of the change is in the checkout.
type delivery struct {
	landed         bool  // the checkout has the change or a part of it
	isPartial      bool  // a part of the change is there and could not be reverted
	failure        error // why the change could not be written
	warnedOfOthers bool  // the user knows that others changed the checkout
}

// Options describes the checkout to open.
type Options struct {
	Dir    string // the checkout, or a folder in it
	Path   string // where to look for the git program
	Forge  string // the web address of the forge
	Cloned bool   // the run cloned it
	Name   string // for messages; empty for "the checkout"
	Fresh  bool   // no files are checked out yet

	// OpenFilter opens sandboxes for git filters; nil permits none. Filters maps the permitted
	// filters of the repository's own configuration to readable paths.
	OpenFilter gitops.OpenFilter
	Filters    map[string][]string
}

// Open opens a checkout. Call StartOn to set its base. The caller closes it.
func Open(ctx context.Context, rec *record.Record, o Options) (*Workspace, error) {
	state, err := rec.MakeFolder(record.StateFolder)
	if err != nil {
		return nil, err
	}
	checkout, err := gitops.Open(ctx, gitops.Options{Dir: o.Dir, Git: FindGit(o.Path, o.Dir), State: state, Forge: o.Forge, LockMark: lockMark(rec), OpenFilter: o.OpenFilter, LFS: rec.Join(record.LFSFolder), CheckOutHead: o.Fresh})
	if err != nil {
		return nil, err
	}
	checkout.AllowFilters(o.Filters)
	return &Workspace{rec: rec, root: checkout.Root(), checkout: checkout, cloned: o.Cloned, name: cmp.Or(o.Name, ownCheckout)}, nil
}

// Folder returns a workspace without git.
func Folder(rec *record.Record, dir string) *Workspace { return &Workspace{rec: rec, root: dir} }

// Close releases the checkout.
func (w *Workspace) Close() error {
	if w.checkout == nil {
		return nil
	}
	return w.checkout.Close()
}

// Checkout returns the git checkout, or nil for a plain folder.
func (w *Workspace) Checkout() *gitops.Checkout { return w.checkout }

// Root returns the absolute path of the checkout or plain folder.
func (w *Workspace) Root() string { return w.root }

// SandboxPath returns the work tree's path for commands.
func (w *Workspace) SandboxPath() string {
	if w.tree == nil {
		return w.root
	}
	return w.tree.SandboxPath()
}

// SandboxPathElsewhere returns SandboxPath, or "" if that is the path of the checkout.
func (w *Workspace) SandboxPathElsewhere() string {
	if seen := w.SandboxPath(); seen != w.root {
		return seen
	}
	return ""
}

// WorkDir returns the absolute path of a folder of the work tree, as commands see it. path is
// repository.path.
func (w *Workspace) WorkDir(path string) string {
	return filepath.Join(w.SandboxPath(), filepath.FromSlash(path))
}

// Cloned reports whether the run made the checkout itself.
func (w *Workspace) Cloned() bool { return w.cloned }

// ownCheckout is the name of a checkout that the run did not make.
const ownCheckout = "the checkout"

// Name returns a name for messages: the path of a clone, otherwise the given name.
func (w *Workspace) Name() string {
	if w.cloned {
		return w.root
	}
	return w.name
}

// NameOrPath returns Name, or the path if the current directory is outside the checkout. It is for
// messages that make people look for the checkout.
func (w *Workspace) NameOrPath() string {
	if w.Name() != ownCheckout {
		return w.Name()
	}
	here, err := os.Getwd()
	if err == nil {
		here, err = filepath.EvalSymlinks(here)
	}
	if err == nil && pathname.IsInAny(here, w.root) {
		return ownCheckout
	}
	return w.root
}

// CheckedOut reports whether a branch was checked out before the run.
func (w *Workspace) CheckedOut(branch string) bool {
	return w.checkout != nil && w.checkout.CheckedOut(branch)
}

// Base returns the base commit; zero before StartOn.
func (w *Workspace) Base() gitops.Base { return w.base }

// BaseName returns a name of a base for messages.
func BaseName(b gitops.Base) string {
	if b.Branch == "" {
		return "commit " + clip.SHA(b.SHA)
	}
	return b.Branch
}

// Commit returns the base commit, to read the run's configuration from. A nil workspace has none.
func (w *Workspace) Commit() settings.Commit {
	if w == nil {
		return settings.Commit{}
	}
	return settings.Commit{Checkout: w.checkout, SHA: w.base.SHA}
}

// Event returns the transcript event of the workspace. repository and branch are those of the
// change. path is the agent's folder.
func (w *Workspace) Event(repository, branch, path string) transcript.Workspace {
	return transcript.Workspace{
		Repository: repository, Base: w.base.Branch, BaseSHA: w.base.SHA, Branch: branch, Path: path, Cloned: w.cloned, Root: w.Root(),
	}
}

// StartOn sets the first base: a branch, or HEAD if branch is "".
func (w *Workspace) StartOn(ctx context.Context, branch string) error {
	return w.SetBase(ctx, gitops.BaseSpec{Branch: branch})
}

// SetBase sets the base that the work starts from. It does not change the checkout.
func (w *Workspace) SetBase(ctx context.Context, spec gitops.BaseSpec) (err error) {
	base, err := w.checkout.SetBase(spec)
	if err != nil {
		return err
	}
	w.base = base
	return w.fillLFS(ctx)
}

// hasOtherBase reports whether the base differs from the checkout's commit.
func (w *Workspace) hasOtherBase() bool { return w.base.Tree != w.checkout.StartCommit().Tree }

// CommandsRan reports whether commands may have changed something.
func (w *Workspace) CommandsRan() bool { return w.commandsRan }

// TakeSnapshot records the state of the work tree before the agent's first turn.
func (w *Workspace) TakeSnapshot(ctx context.Context) error {
	w.commandsRan = true
	_, err := w.adoptSetupFiles(ctx)
	return errors.Join(err, w.copySetupGit(ctx), w.markSnapshot())
}

// takeCheckoutSnapshot records the state of the checkout. An overlay on the checkout's own commit
// uses the snapshot of Prepare: later changes of others show through it and count as theirs.
// Otherwise files are copied or covered, which needs a new snapshot.
func (w *Workspace) takeCheckoutSnapshot(ctx context.Context) (err error) {
	prepared := w.snapshots.prepared
	w.snapshots.prepared = nil
	if prepared != nil && !w.tree.Private() && !w.hasOtherBase() {
		w.checkout.DropHidden(prepared)
		w.snapshots.checkout = prepared
		return nil
	}
	if w.snapshots.checkout, err = w.checkout.Snapshot(ctx); err != nil {
		return fmt.Errorf("look at the checkout before the first turn: %w", err)
	}
	return nil
}

// markSnapshot saves the snapshots for a resumed run.
func (w *Workspace) markSnapshot() error {
	raw, err := w.checkout.Mark(w.snapshots.checkout, w.snapshots.work)
	if err != nil {
		return err
	}
	if err := w.rec.Write(markFile, raw); err != nil {
		return err
	}
	if w.tree.Private() {
		filetime.Mark() // waits, so that what the agent changes in submodules is newer than the file
	}
	return nil
}

// markFile contains the snapshots, written by gitops, for a resumed run.
const markFile = record.StateFolder + "/checkout.json"

// untrackedFolder has copies of the files that were untracked before the first turn.
const untrackedFolder = record.StateFolder + "/untracked"

// UntrackedDir returns the folder with copies of the files untracked before the first turn.
func (w *Workspace) UntrackedDir() string { return w.rec.Join(untrackedFolder) }

// CopyUntracked copies the files that were untracked before the first turn, for checks on fresh
// trees.
func (w *Workspace) CopyUntracked(ctx context.Context) error {
	if !w.tree.Private() {
		return nil // checks see the originals
	}
	err := w.withTree(ctx, OfAgent, func(c *gitops.Checkout, _ *os.Root) error {
		return c.CopyUntracked(ctx, w.snapshots.work, w.UntrackedDir())
	})
	if err != nil {
		return fmt.Errorf("keep the untracked files for verification: %w", err)
	}
	return nil
}

// RequireUnchangedBySetup returns an error if setup commands changed tracked files.
func (w *Workspace) RequireUnchangedBySetup(ctx context.Context) error {
	dirty, err := w.adoptSetupFiles(ctx)
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

// CheckoutFault returns the outcome for an error of the checkout: it is missing, the index or an object is damaged, a
// path is too deep, or a git filter failed or is forbidden. It returns nil for any other error, and for one that
// already has an outcome. After commands have run, their files may be the cause of a filter's failure.
func (w *Workspace) CheckoutFault(err error) *outcome.Stop {
	failed, isFilter := errors.AsType[*gitops.FilterError](err)
	objectStop := objectFailure(err)
	stop, known := errors.AsType[*outcome.Stop](err)
	hasOutcome := known && stop.Outcome != outcome.InternalError
	isMissing := isMissingError(err) && !hasOutcome
	switch {
	case (isMissing || objectStop != nil) && w.wasRemoved():
		return outcome.Stopf(outcome.InternalError, "unexpected", "The checkout %s was deleted or moved during the run, or its git folder was; put it back.", w.root).Because(err)
	case objectStop != nil:
		return objectStop
	case errors.Is(err, gitops.ErrIndex) && !hasOutcome:
		why := err
		if known {
			why = stop.Err // without the words of an internal error
		}
		return outcome.Stopf(outcome.InvalidInput, "damaged_repository", "%s.", outcome.Sentence(why.Error())).Because(err)
	case hasOutcome || !isFilter:
		return nil
	case w.CommandsRan():
		return filterStop(outcome.ExtensionFailed, failed, err)
	}
	return filterStop(outcome.InvalidInput, failed, err)
}

// wasRemoved reports whether somebody deleted or moved the checkout or its git folder.
func (w *Workspace) wasRemoved() bool { return w.checkout != nil && w.checkout.WasRemoved() }

// isMissingError reports whether a path of err names nothing, also since something else than a folder is above it or
// a link above it leads to itself.
func isMissingError(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) || errors.Is(err, gitops.ErrNotRepository)
}

// isMissing reports whether a path names nothing.
func isMissing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

func filterStop(ends outcome.Outcome, failed *gitops.FilterError, err error) *outcome.Stop {
	return outcome.Stopf(ends, "git_filter", "%s.", outcome.Sentence(failed.Error())).Because(err)
}

// CheckoutFailure returns the outcome for an unusable checkout, or nil if err is nil. Errors that it does not know
// get no outcome, only a message.
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
		{errors.Is(err, gitops.ErrIndex), "damaged_repository"},
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

// objectFailure returns the outcome for a damaged object or a path that is too deep, or nil for any other error.
func objectFailure(err error) *outcome.Stop {
	if damaged, is := errors.AsType[*gitops.ObjectError](err); is {
		return damagedRepository(damaged, err)
	}
	if deep, is := errors.AsType[*gitops.TooDeepError](err); is {
		return outcome.Stopf(outcome.InvalidInput, "unsupported_checkout", "%s.", outcome.Sentence(deep.Error())).Because(err)
	}
	return nil
}
