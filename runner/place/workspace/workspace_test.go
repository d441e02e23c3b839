package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/record/recordtest"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

// opened is a workspace on its first base, without a snapshot.
func opened(t *testing.T, dir string) *Workspace {
	t.Helper()
	w := must.Get(Open(t.Context(), recordtest.New(t, "20260101T000000Z-00000000"), Options{Dir: dir, Path: os.Getenv("PATH")}))(t)
	t.Cleanup(func() { _ = w.Close() })
	must.Do(t, w.StartOn(t.Context(), ""))
	return w
}

// working is a workspace in which an agent may have begun, in the private tree.
func working(t *testing.T, dir string) (w *Workspace, tree gittest.Repo) {
	t.Helper()
	w = opened(t, dir)
	tree = inTree(t, w)
	must.Do(t, w.TakeSnapshot(t.Context()))
	return w, tree
}

// inTree has commands work in a private tree.
func inTree(t *testing.T, w *Workspace) (tree gittest.Repo) {
	t.Helper()
	dir := w.rec.Join(record.PrivateTree)
	must.Do(t, w.UseTree(t.Context(), privateTree(dir)))
	return gittest.Repo{T: t, Dir: dir}
}

// privateTree is a private tree at a path.
type privateTree string

func (privateTree) ClaimPath() error                   { return nil }
func (p privateTree) Private() bool                    { return true }
func (privateTree) GitFolder(string) string            { return "" }
func (privateTree) CopySetupGit(context.Context) error { return nil }
func (p privateTree) SandboxPath() string              { return string(p) }
func (p privateTree) ChangesFolder() string            { return string(p) }
func (p privateTree) HasChanges(Changes) bool          { return true }
func (p privateTree) Drop(Changes) error               { return os.RemoveAll(string(p)) }

func (p privateTree) Open(context.Context, Changes) (gitops.Layer, error) {
	root, err := os.OpenRoot(string(p))
	return gitops.Layer{Tree: root}, err
}

// change is what stands in the workspace, kept in its run directory.
func change(t *testing.T, w *Workspace) *gitops.ChangeSet {
	t.Helper()
	return must.Get(w.TakeChange(t.Context(), everything))(t)
}

// wantWarnings makes sure that these codes were warned of and no others.
func wantWarnings(t *testing.T, w *Workspace, codes ...string) {
	t.Helper()
	var got []string
	for _, warning := range w.rec.Warnings() {
		got = append(got, warning.Code)
	}
	must.Same(t, codes, got)
}

func TestExplainsUnusableCheckout(t *testing.T) {
	for _, test := range []struct {
		reason string
		make   func(gittest.Repo)
	}{
		{"", gittest.Repo.Seed},
		{"no_checkout", func(r gittest.Repo) { r.Remove(".git") }},
		{"no_commit", func(gittest.Repo) {}},
		{"unsupported_checkout", func(r gittest.Repo) { r.Remove(".git"); r.Git("init", "-q", "--bare") }},
		{"unsupported_checkout", func(r gittest.Repo) { r.Seed(); r.Git("config", "core.repositoryformatversion", "7") }},
	} {
		t.Run(test.reason, func(t *testing.T) {
			repo := gittest.New(t)
			test.make(repo)
			w, err := Open(t.Context(), recordtest.New(t, "20260101T000000Z-00000000"), Options{Dir: repo.Dir, Path: os.Getenv("PATH")})
			outcometest.Want(t, CheckoutFailure(err), test.reason)
			if err == nil {
				must.Do(t, w.Close())
			}
		})
	}
}

func TestNamesFilesThatGitCannotRead(t *testing.T) {
	for _, file := range []string{"config", "config.worktree", "packed-refs", "index", "shallow", "info/exclude", "info/attributes", "objects/info/alternates"} {
		repo := gittest.Seeded(t)
		repo.Remove(".git/" + file)
		must.Do(t, syscall.Mkfifo(repo.Path(".git/"+file), 0o666))
		_, err := Open(t.Context(), recordtest.New(t, "20260101T000000Z-00000000"), Options{Dir: repo.Dir, Path: os.Getenv("PATH")})
		outcometest.Want(t, CheckoutFailure(err), "unsupported_checkout", repo.Path(".git/"+file))
	}
	repo := gittest.Seeded(t)
	repo.Write(".git/index", "no index\n")
	_, err := Open(t.Context(), recordtest.New(t, "20260101T000000Z-00000000"), Options{Dir: repo.Dir, Path: os.Getenv("PATH")})
	outcometest.Want(t, CheckoutFailure(err), "damaged_repository", repo.Path(".git/index"), "git reset")
	repo = gittest.Seeded(t)
	must.Do(t, syscall.Mkfifo(repo.Path("src/.gitattributes"), 0o666))
	outcometest.Want(t, opened(t, repo.Dir).Prepare(t.Context(), CheckoutNeeds{Path: "."}), "unsupported_checkout", repo.Path("src/.gitattributes"))
	for _, stars := range []string{"**/a*/", `*\052\057a*/`} {
		repo = gittest.Seeded(t)
		repo.Write("src/.gitattributes", `"`+strings.Repeat(stars, 14)+"x\" text\n")
		outcometest.Want(t, opened(t, repo.Dir).Prepare(t.Context(), CheckoutNeeds{Path: "."}), "unsupported_checkout", repo.Path("src/.gitattributes"))
	}
	for lines, reason := range map[int]string{2: "dirty_checkout", 1000: "unsupported_checkout"} {
		repo, deep := gittest.Seeded(t), "src/"+strings.Repeat("a/", 200)+"deep"
		repo.Write(deep, "")
		repo.Commit("deep") // while git is quick
		repo.Write("src/.gitattributes", strings.Repeat(strings.Repeat("**/a*/", 3)+"x text\n", lines))
		repo.Write(deep, "changed\n")
		outcometest.Want(t, CheckoutFailure(opened(t, repo.Dir).Prepare(t.Context(), CheckoutNeeds{Path: "."})), reason, "src/")
	}
	repo = gittest.Seeded(t)
	repo.Write("src/.gitattributes", strings.Repeat("\n", 9<<20))
	outcometest.Want(t, opened(t, repo.Dir).Prepare(t.Context(), CheckoutNeeds{Path: "."}), "unsupported_checkout", "more than 8388608 bytes")
	repo = gittest.Seeded(t)
	repo.Nest("d", 300)
	repo.Commit("deep")
	outcometest.Want(t, objectFailure(opened(t, repo.Dir).Prepare(t.Context(), CheckoutNeeds{Path: "."})), "unsupported_checkout", "more than 256 parts")
}

func TestNamesMissingCheckout(t *testing.T) {
	missing, damaged := os.ErrNotExist, &gitops.ObjectError{ID: "0"}
	for name, test := range map[string]struct {
		do     func(gittest.Repo) error
		err    error
		reason string
	}{
		"there, a file missing":   {func(gittest.Repo) error { return nil }, missing, ""},
		"there, an object absent": {func(gittest.Repo) error { return nil }, damaged, "damaged_repository"},
		"moved":                   {func(r gittest.Repo) error { return os.Rename(r.Dir, r.Dir+"-moved") }, missing, "unexpected"},
		"moved, without objects":  {func(r gittest.Repo) error { return os.Rename(r.Dir, r.Dir+"-moved") }, damaged, "unexpected"},
		"its git folder":          {func(r gittest.Repo) error { return os.RemoveAll(r.Path(".git")) }, damaged, "unexpected"},
		"its git folder, a file there": {func(r gittest.Repo) error {
			return errors.Join(os.Rename(r.Path(".git"), r.Path("moved")), os.WriteFile(r.Path(".git"), []byte("x"), 0o600))
		}, &fs.PathError{Op: "open", Path: ".git/objects", Err: syscall.ENOTDIR}, "unexpected"},
		"its HEAD":          {func(r gittest.Repo) error { return os.Remove(r.Path(".git/HEAD")) }, missing, "unexpected"},
		"a malformed index": {func(gittest.Repo) error { return nil }, fmt.Errorf("look: %w", gitops.ErrIndex), "damaged_repository"},
		"made anew": {func(r gittest.Repo) error {
			err := os.Rename(r.Dir, r.Dir+"-moved")
			r.Write("README", "")
			r.Git("init", "-q")
			return err
		}, damaged, "unexpected"},
	} {
		t.Run(name, func(t *testing.T) {
			repo := gittest.Seeded(t)
			w := opened(t, repo.Dir)
			must.Do(t, w.Prepare(t.Context(), CheckoutNeeds{Path: "."}))
			must.Do(t, test.do(repo))
			stop := w.CheckoutFault(test.err)
			if stop == nil && test.reason == "" {
				return
			}
			outcometest.Want(t, stop, test.reason)
			must.Same(t, test.reason == "unexpected", strings.HasPrefix(stop.Message, "The checkout "+repo.Dir+" was deleted or moved"), stop.Message)
		})
	}
}

func TestClassifiesCheckoutFailures(t *testing.T) {
	for reason, err := range map[string]error{
		"damaged_repository": &gitops.ObjectError{},
		"checkout_in_use":    &gitops.InUseError{},
		"dirty_checkout":     &gitops.ObstructedError{Paths: []string{"a"}},
	} {
		outcometest.Want(t, CheckoutFailure(errors.Join(err)), reason)
	}
	if err := CheckoutFailure(os.ErrClosed); !errors.Is(err, os.ErrClosed) || errors.As(err, new(*outcome.Stop)) {
		t.Errorf("got %v", err)
	}
}

func TestFailedSetBaseKeepsBase(t *testing.T) {
	repo := gittest.Seeded(t)
	repo.Git("branch", "other")
	repo.Write("README", "later\n")
	repo.Commit("later")
	w := must.Get(Open(t.Context(), recordtest.New(t, "20260101T000000Z-00000000"), Options{Dir: repo.Path("src/deep"), Path: os.Getenv("PATH")}))(t)
	defer w.Close()
	if w.Base() != (gitops.Base{}) || w.Root() != repo.Dir {
		t.Errorf("opened at %s on %v", w.Root(), w.Base())
	}
	outcometest.Want(t, CheckoutFailure(w.StartOn(t.Context(), "nowhere")), "unknown_base")
	must.Same(t, gitops.Base{}, w.Base(), "on")
	must.Do(t, w.StartOn(t.Context(), ""))
	must.Do(t, w.SetBase(t.Context(), gitops.BaseSpec{Branch: "other"}))
	if w.Base().Branch != "other" || w.Commit().SHA != w.Base().SHA || repo.Read("README") != "later\n" {
		t.Errorf("on %v, %q", w.Base(), repo.Read("README"))
	}
}

func TestNamesWorkspaceForPeople(t *testing.T) {
	for want, o := range map[string]Options{"the checkout": {}, "the replay's tree": {Name: "the replay's tree"}, "": {Cloned: true, Name: "x"}} {
		o.Dir, o.Path = gittest.Seeded(t).Dir, os.Getenv("PATH")
		w := must.Get(Open(t.Context(), recordtest.New(t, "20260101T000000Z-00000000"), o))(t)
		must.Same(t, cmp.Or(want, o.Dir), w.Name(), o)
		must.Same(t, o.Cloned, w.Cloned(), o)
		if got := w.NameOrPath(); got != cmp.Or(o.Name, o.Dir) && !o.Cloned {
			t.Errorf("from outside, %+v is in %q", o, got)
		}
		t.Chdir(o.Dir)
		must.Same(t, w.Name(), w.NameOrPath(), "from inside", o)
		must.Do(t, w.Close())
	}
	own := Folder(nil, "/r")
	must.Same(t, filepath.Join("/r", "a", "b"), own.WorkDir("a/b"), "works in")
	detached := gitops.Base{SHA: strings.Repeat("ab", 20)}
	must.Same(t, "commit "+clip.SHA(detached.SHA), BaseName(detached), "a detached HEAD")
	must.Same(t, "main", BaseName(gitops.Base{Branch: "main", SHA: detached.SHA}), "a branch")
}

func TestRefusesSetupChangesOfTrackedFiles(t *testing.T) {
	for name, test := range map[string]struct {
		do     func(gittest.Repo)
		reason string
	}{
		"nothing":   {func(gittest.Repo) {}, ""},
		"new file":  {func(r gittest.Repo) { r.Write("cache/x", "x") }, ""},
		"same text": {func(r gittest.Repo) { r.Write("README", "one\ntwo\n") }, ""},
		"changed":   {func(r gittest.Repo) { r.Write("README", "x") }, "setup_changed_files"},
		"removed":   {func(r gittest.Repo) { r.Remove("gone") }, "setup_changed_files"},
		"git":       {func(r gittest.Repo) { r.Git("config", "core.editor", "x") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := gittest.Seeded(t)
			w, tree := working(t, repo.Dir)
			test.do(tree)
			outcometest.Want(t, w.RequireUnchangedBySetup(t.Context()), test.reason)
		})
	}
}

func TestCopiesUntrackedFilesForChecks(t *testing.T) {
	repo := gittest.Seeded(t)
	repo.Write(".gitignore", "ignored\n")
	repo.Commit("ignore")
	repo.Write("ignored", "library")
	repo.Write("notes/mine", "notes")
	w, tree := working(t, repo.Dir)
	tree.Write("agent", "made later")
	must.Do(t, w.CopyUntracked(t.Context()))
	want := map[string]string{"ignored": "library", "notes/mine": "notes"}
	must.Same(t, want, gittest.Repo{T: t, Dir: w.UntrackedDir()}.Files())
	w.rec.Remove(untrackedFolder)
	must.Do(t, w.RecopyUntracked(t.Context()))
	tree.Remove("ignored")
	must.Do(t, w.RecopyUntracked(t.Context())) // what is kept already stays
	must.Same(t, true, w.rec.Has(untrackedFolder+"/ignored"), "what was kept is gone")
}

func TestPlainFolderHasNoGit(t *testing.T) {
	dir := t.TempDir()
	w := Folder(recordtest.New(t, "20260101T000000Z-00000000"), dir)
	if w.Checkout() != nil || w.Root() != dir || w.CommandsRan() {
		t.Errorf("%+v", w)
	}
	must.Do(t, w.Close())
}
