package workspace

import (
	"context"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
)

// everything leaves nothing out of a change.
func everything(_ context.Context, c *gitops.ChangeSet) (*gitops.ChangeSet, error) { return c, nil }

func TestSavesTakenChange(t *testing.T) {
	repo := gittest.Seeded(t)
	repo.Write("mine", "untracked before")
	w, tree := working(t, repo.Dir)
	tree.Write("README", "one\nthree\n")
	tree.Remove("gone")
	taken := change(t, w)
	var got []string
	for _, f := range ChangeFiles(taken) {
		got = append(got, string(f.Status)+" "+f.Path)
	}
	must.Same(t, []string{"M README", "D gone"}, got)
	patch := string(must.Get(w.rec.Read(record.PatchFile))(t))
	if !strings.Contains(patch, "+three") || !w.rec.Has(record.PackFile) || !w.saved {
		t.Errorf("kept %v:\n%s", w.saved, patch)
	}
	if view := must.Get(w.rec.View())(t); view.Change == nil || view.Change.TreeSHA != string(taken.Tree) || view.Change.BaseSHA != "" || view.Change.Insertions != 1 {
		t.Errorf("the transcript tells of %+v", view.Change)
	}
	if err := must.Get(w.OpenWorkDir(tree.Dir, "."))(t).Close(); err != nil || w.saved {
		t.Errorf("the work counts as kept while the agent goes on: %v", err)
	}
}

func TestReportsObstaclesToTakingChange(t *testing.T) {
	fails := func(err error) func(context.Context, *gitops.ChangeSet) (*gitops.ChangeSet, error) {
		return func(context.Context, *gitops.ChangeSet) (*gitops.ChangeSet, error) { return nil, err }
	}
	for name, test := range map[string]struct {
		leaveOut func(context.Context, *gitops.ChangeSet) (*gitops.ChangeSet, error)
		reason   string
		there    bool
	}{
		"nothing":    {everything, "", true},
		"unreadable": {fails(fs.ErrPermission), "change", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := gittest.Seeded(t)
			w, tree := working(t, repo.Dir)
			tree.Write("README", "changed\n")
			taken, err := w.TakeChange(t.Context(), test.leaveOut)
			outcometest.Want(t, err, test.reason)
			if (taken != nil) != test.there || w.saved != test.there || w.rec.Has(record.PatchFile) != test.there {
				t.Errorf("taken %v, kept %v", taken, w.saved)
			}
		})
	}
	w, _ := working(t, gittest.Seeded(t).Dir)
	must.Is(t, os.ErrClosed, must.Err(w.TakeChange(t.Context(), fails(os.ErrClosed))))
}

func TestSavesMovedChangeBesideOriginal(t *testing.T) {
	repo := gittest.Seeded(t)
	w, tree := working(t, repo.Dir)
	tree.Write("README", "first\n")
	made := change(t, w)
	must.Do(t, w.SaveOriginalPack())
	must.Do(t, w.SaveChange(t.Context(), made, "0123"))
	must.Same(t, "0123", must.Get(w.rec.View())(t).Change.BaseSHA, "on", "the work is in")
	must.Same(t, record.WorkPackFile, workPack(w.rec.Directory), "on", "the work is in")
	must.Do(t, w.SaveChange(t.Context(), made, ""))
	must.Same(t, record.PackFile, workPack(w.rec.Directory), "the work is in")
	w.rec.Remove(record.PackFile)
	must.Is(t, fs.ErrNotExist, w.SaveOriginalPack())
}

func TestNamesUnwritableFile(t *testing.T) {
	repo := gittest.Seeded(t)
	w, tree := working(t, repo.Dir)
	tree.Write("README", "changed\n")
	must.Do(t, os.Mkdir(w.rec.Join(record.PackFile), 0o700))
	must.Fail(t, "write "+record.PackFile, must.Err(w.TakeChange(t.Context(), everything)))
	must.Same(t, false, w.saved, "it counts as kept")
}

func TestQuotesInvalidUTF8Paths(t *testing.T) {
	for path, want := range map[string]string{"é/a": "é/a", "a\xff": `"a\xff"`, `a"b`: `a"b`} {
		must.Same(t, want, JSONPath(path), path)
	}
	none := []changeset.File{}
	must.Same(t, none, ChangeFiles(&gitops.ChangeSet{}))
}

func TestOpensWorkingDirectoryWithoutBlocking(t *testing.T) {
	repo := gittest.Seeded(t)
	w, tree := working(t, repo.Dir)
	root := must.Get(w.OpenWorkDir(tree.Dir, "src"))(t)
	must.Get(root.Stat("main.go"))(t)
	must.Do(t, root.Close())
	must.Do(t, syscall.Mkfifo(tree.Path("pipe"), 0o600))
	for _, path := range []string{"pipe", "nowhere"} {
		must.Fail(t, "", must.Err(w.OpenWorkDir(tree.Dir, path)), path, "was opened")
	}
	outcometest.Want(t, unreadableError("/x", &fs.PathError{Op: "open", Path: "/x", Err: fs.ErrPermission}), "change", "/x")
}

func TestRevertsProtectedPaths(t *testing.T) {
	repo := gittest.Seeded(t)
	repo.Write("locked/old", "base\n")
	repo.Commit("more")
	w, tree := working(t, repo.Dir)
	tree.Write("locked/old", "changed\n")
	tree.Write("locked/new", "made\n")
	tree.Write("free", "made\n")
	left := must.Get(w.RevertProtected(t.Context(), change(t, w), []string{"locked/new", "locked/old"}))(t)
	if len(left.Files) != 1 || left.Files[0].Path != "free" || tree.Read("locked/old") != "base\n" {
		t.Errorf("left %v, locked/old is %q", left.Files, tree.Read("locked/old"))
	}
	must.Fail(t, "", must.Err(os.Lstat(tree.Path("locked/new"))), "what was made at a protected path is there")
	warned := w.rec.Warnings()
	if len(warned) != 1 || warned[0].Message != "Changes of protected files were left out (policy.change.protected): locked/new, locked/old." {
		t.Errorf("warned of %v", warned)
	}
}

func TestNamesObstacleToRevert(t *testing.T) {
	repo := gittest.Seeded(t)
	repo.Write("locked/old", "base\n")
	repo.Write(".gitignore", "kept\n")
	repo.Commit("more")
	w, tree := working(t, repo.Dir)
	tree.Remove("locked/old")
	tree.Write("locked/old/kept", "ignored, so that nobody may remove it\n")
	_, err := w.RevertProtected(t.Context(), change(t, w), []string{"locked/old"})
	want := "The change touches protected files (locked/old), which can't be restored (policy.change.protected): what was made at locked/old/ is in the way; let the agent remove it."
	must.Same(t, want, outcometest.Want(t, err, "policy_violation/change").Message)
}
