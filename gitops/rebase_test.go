package gitops_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/agent-ci/agent-ci/gitops"
)

// drifted is a repository with a base, a change on it and a base that moved.
func drifted(t testing.TB, base, change, moved func(repo)) (r repo, before, after string, rebased *gitops.ChangeSet, err error) {
	t.Helper()
	r = newRepo(t)
	base(r)
	r.commit("base")
	before = r.git("rev-parse", "HEAD")
	r.git("checkout", "-q", "-b", "moved")
	moved(r)
	r.git("add", "-A")
	r.git("commit", "-q", "--allow-empty", "-m", "moved")
	after = r.git("rev-parse", "HEAD")
	r.git("checkout", "-q", "main")
	c := r.open("")
	snap := snapshot(t, c)
	change(r)
	cs := changes(t, c, snap)
	onto, err := c.BaseAt("main", after)
	if err != nil {
		t.Fatal(err)
	}
	rebased, err = c.Rebase(t.Context(), cs, onto)
	return r, before, after, rebased, err
}

func TestRebase(t *testing.T) {
	nothing := func(repo) {}
	three := func(r repo) { r.write("a", "1\n2\n3\n4\n5\n"); r.write("keep", "k\n") }
	for _, c := range []struct {
		name                string
		base, change, moved func(repo)
		conflict            string // words of the error; "" for none
	}{
		{"other files", three, func(r repo) { r.write("a", "1\n2\n") }, func(r repo) { r.write("b", "b\n"); r.remove("keep") }, ""},
		{"nothing moved", three, func(r repo) { r.write("new/file", "x\n") }, nothing, ""},
		{"the same change", three, func(r repo) { r.write("a", "X\n"); r.write("n", "n\n") }, func(r repo) { r.write("a", "X\n"); r.write("n", "n\n") }, ""},
		{"lines apart", three, func(r repo) { r.write("a", "ONE\n2\n3\n4\n5\n") }, func(r repo) { r.write("a", "1\n2\n3\n4\nFIVE\n") }, ""},
		{"the same lines", three, func(r repo) { r.write("a", "ONE\n2\n3\n4\n5\n") }, func(r repo) { r.write("a", "one\n2\n3\n4\n5\n") }, `"a" (both changed the same lines)`},
		{"mode and lines", three, func(r repo) { r.chmod("a", 0o755) }, func(r repo) { r.write("a", "1\n2\n3\n4\nFIVE\n") }, ""},
		{"binary", func(r repo) { r.write("a", "\x00a") }, func(r repo) { r.write("a", "\x00b") }, func(r repo) { r.write("a", "\x00c") }, "binary"},
		{"changed and deleted", three, func(r repo) { r.write("a", "X\n") }, func(r repo) { r.remove("a") }, "deleted on the new base"},
		{"deleted and changed", three, func(r repo) { r.remove("a") }, func(r repo) { r.write("a", "X\n") }, "deleted here"},
		{"both deleted", three, func(r repo) { r.remove("a"); r.write("z", "z\n") }, func(r repo) { r.remove("a") }, ""},
		{"changed and renamed", three, func(r repo) { r.write("a", "X\n") }, func(r repo) { r.git("mv", "a", "b") }, `renamed to "b"`},
		{"both added", three, func(r repo) { r.write("n", "x\n") }, func(r repo) { r.write("n", "y\n") }, "added here and on the new base"},
		{"a folder for a file", three, func(r repo) { r.write("n", "x\n") }, func(r repo) { r.write("n/f", "y\n") }, "folder on the new base"},
		{"a file for a folder", three, func(r repo) { r.write("n/f", "x\n") }, func(r repo) { r.write("n", "y\n") }, `"n" is a file on the new base`},
		{"a folder becomes a file", func(r repo) { r.write("d/1", "1\n") }, func(r repo) { r.remove("d"); r.write("d", "file\n") }, func(r repo) { r.write("other", "o\n") }, ""},
		{"a folder that grew becomes a file", func(r repo) { r.write("d/1", "1\n") }, func(r repo) { r.remove("d"); r.write("d", "file\n") }, func(r repo) { r.write("d/2", "2\n") }, "folder on the new base"},
		{"a file becomes a folder", three, func(r repo) { r.remove("a"); r.write("a/b", "b\n") }, func(r repo) { r.write("other", "o\n") }, ""},
		{"a link", func(r repo) { r.link("x", "l") }, func(r repo) { r.remove("l"); r.link("y", "l") }, func(r repo) { r.write("other", "o\n") }, ""},
		{"a link both ways", func(r repo) { r.link("x", "l") }, func(r repo) { r.remove("l"); r.link("y", "l") }, func(r repo) { r.remove("l"); r.link("z", "l") }, "link"},
		{"odd names", three, func(r repo) { r.write("a b\t\"ü\\\n", "x\n") }, func(r repo) { r.write("ä/\x01", "y\n") }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, before, after, rebased, err := drifted(t, c.base, c.change, c.moved)
			if c.conflict != "" {
				var conflict *gitops.MergeError
				if !errors.As(err, &conflict) || !strings.Contains(err.Error(), c.conflict) {
					t.Fatalf("err = %v, want a conflict with %q", err, c.conflict)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			same(t, "tree", gitMergeTree(t, r, before, after), string(rebased.Tree))
			same(t, "base", after, rebased.Base.SHA)
		})
	}
}

// gitMergeTree is the tree that git makes of the work tree's change and a
// commit; "" for a conflict.
func gitMergeTree(t testing.TB, r repo, before, after string) string {
	t.Helper()
	r.git("add", "-A")
	r.git("commit", "-q", "--allow-empty", "-m", "change")
	out, err := tryMergeTree(r, r.git("rev-parse", "HEAD"), after)
	r.git("reset", "-q", "--hard", before)
	if err != nil {
		return ""
	}
	return out
}

func tryMergeTree(r repo, ours, theirs string) (string, error) {
	if err := r.tryGit("-c", "merge.renames=false", "merge-tree", "--write-tree", ours, theirs); err != nil {
		return "", err
	}
	return r.git("-c", "merge.renames=false", "merge-tree", "--write-tree", ours, theirs), nil
}

// TestRebaseAsGit compares with git's own merge: what Rebase merges, git merges
// to the same tree.
func TestRebaseAsGit(t *testing.T) {
	lines := func(n int) string {
		var s strings.Builder
		for i := range n {
			fmt.Fprintf(&s, "line %d\n", i)
		}
		return s.String()
	}
	names := []string{"a", "d/b", "d/e/c", "x y"}
	merged := 0
	rapid.Check(t, func(rt *rapid.T) {
		edit := func(label string) func(repo) {
			type step struct {
				name string
				kind int
				line int
			}
			var steps []step
			for range rapid.IntRange(1, 3).Draw(rt, label) {
				steps = append(steps, step{rapid.SampledFrom(append(names, "new", "d/new")).Draw(rt, "name"), rapid.IntRange(0, 3).Draw(rt, "kind"), rapid.IntRange(0, 11).Draw(rt, "line")})
			}
			return func(r repo) {
				for _, s := range steps {
					content, err := os.ReadFile(filepath.Join(r.dir, s.name))
					switch {
					case err != nil:
						r.write(s.name, label+"\n")
					case s.kind == 0:
						r.remove(s.name)
					case s.kind == 1:
						r.chmod(s.name, 0o755)
					default:
						r.write(s.name, strings.Replace(string(content), fmt.Sprintf("line %d\n", s.line), label+"\n", 1))
					}
				}
			}
		}
		base := func(r repo) {
			for _, name := range names {
				r.write(name, lines(12))
			}
		}
		r, before, after, rebased, err := drifted(t, base, edit("ours"), edit("theirs"))
		if err != nil {
			if !errors.As(err, new(*gitops.MergeError)) {
				rt.Fatal(err)
			}
			return
		}
		merged++
		if want := gitMergeTree(t, r, before, after); want != string(rebased.Tree) {
			rt.Fatalf("tree %s, git makes %q:\n%s", rebased.Tree, want, r.git("diff", want, string(rebased.Tree)))
		}
	})
	if merged == 0 {
		t.Error("nothing was merged")
	}
}

func TestAddPack(t *testing.T) {
	r := newRepo(t)
	r.write("a", "a\n")
	r.commit("one")
	base := r.git("rev-parse", "HEAD")
	elsewhere := repo{t, filepath.Join(t.TempDir(), "elsewhere")}
	r.git("clone", "-q", r.dir, elsewhere.dir)
	elsewhere.write("b/c", "c\n")
	elsewhere.commit("two")
	tip := elsewhere.git("rev-parse", "HEAD")
	name := elsewhere.gitWith(nil, []byte(tip+"\n^"+base+"\n"), "pack-objects", "--revs", "-q", "fetched")
	pack, err := os.ReadFile(elsewhere.path("fetched-" + name + ".pack"))
	if err != nil {
		t.Fatal(err)
	}
	c := r.open(gitProgram(t))
	if c.HasCommit(tip) {
		t.Fatal("the commit is here already")
	}
	if err := c.AddPack(t.Context(), strings.NewReader("no pack"), nil); err == nil {
		t.Error("an empty pack was taken")
	}
	if err := c.AddPack(t.Context(), bytes.NewReader(pack), []string{tip}); err != nil {
		t.Fatal(err)
	}
	if !c.HasCommit(tip) {
		t.Fatal("the commit is not here")
	}
	onto, err := c.BaseAt("main", tip)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "tree")
	if err := c.Materialise(t.Context(), gitops.MaterialiseOptions{Dir: dir, Tree: onto.Tree, Base: onto}); err != nil {
		t.Fatal(err)
	}
	fresh := repo{t, dir}
	same(t, "commit", tip, fresh.git("rev-parse", "HEAD"))
	same(t, "log", "two", fresh.git("log", "--format=%s"))
	same(t, "status", "", fresh.git("status", "--porcelain"))
	if r.tryGit("cat-file", "-e", tip) == nil {
		t.Error("what was fetched is in the repository")
	}
	lent, err := filepath.Glob(fresh.path(".git/objects/pack/*.pack"))
	if err != nil || len(lent) != 1 {
		t.Fatal(lent, err)
	}
	info, err := os.Stat(lent[0])
	if err != nil {
		t.Fatal(err)
	}
	if links := info.Sys().(*syscall.Stat_t).Nlink; links != 1 {
		t.Errorf("who writes the pack of a fresh tree writes %d others", links-1)
	}
}
