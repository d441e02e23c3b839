package gitops_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/policy/must"
)

// drifted is a repository with a base, a change on it and a base that moved. Where they conflict,
// rebased has marks.
func drifted(t testing.TB, base, change, moved func(repo)) (r repo, after string, rebased *gitops.ChangeSet, err error) {
	t.Helper()
	r = newRepo(t)
	base(r)
	r.Commit("base")
	r.Git("checkout", "-q", "-b", "moved")
	moved(r)
	r.Commit("moved")
	after = r.Git("rev-parse", "HEAD")
	r.Git("checkout", "-q", "main")
	c := r.open()
	snap := snapshot(t, c)
	change(r)
	cs := changes(t, c, snap)
	onto, err := c.BaseAt("main", after)
	must.Do(t, err)
	rebased, err = c.Rebase(t.Context(), cs, onto)
	if errors.As(err, new(*gitops.MergeError)) {
		rebased = checkMarked(t, c, cs, onto)
	}
	return r, after, rebased, err
}

// checkMarked looks at what is made of a change that conflicts: each file that is told of
// has both sides between marks as git puts them, or is as on the new base.
func checkMarked(t testing.TB, c *gitops.Checkout, cs *gitops.ChangeSet, onto gitops.Base) *gitops.ChangeSet {
	t.Helper()
	moved, conflicts, err := c.RebaseMarked(t.Context(), cs, onto, gitops.Labels{Ours: "ours", Base: "base", Theirs: "theirs"})
	if err != nil || len(conflicts) == 0 {
		t.Fatalf("marked: %d conflicts, %v", len(conflicts), err)
	}
	fileOf := func(of *gitops.ChangeSet, path string) (f changeset.File) {
		if i := slices.IndexFunc(of.Files, func(f changeset.File) bool { return f.Path == path }); i >= 0 {
			f = of.Files[i]
		}
		return f
	}
	for _, conflict := range conflicts {
		is, was := fileOf(moved, conflict.Path), fileOf(cs, conflict.Path)
		if !conflict.Marked {
			must.Same(t, "", is.Path, conflict.Path, conflict.Why, "is not as on the new base")
			continue
		}
		if strings.Trim(is.OldID, "0") == "" {
			continue // renamed
		}
		git := exec.Command("git", "merge-file", "-p", "--diff3", "-L", "ours (agent-ci)", "-L", "base (agent-ci)", "-L", "theirs (agent-ci)")
		for i, id := range []string{is.OldID, was.OldID, was.NewID} {
			name := filepath.Join(t.TempDir(), fmt.Sprint(i))
			must.Do(t, os.WriteFile(name, blobOf(t, c, id), 0o600))
			git.Args = append(git.Args, name)
		}
		want, _ := git.Output() // which exits with the number of conflicts
		must.Same(t, strings.ReplaceAll(string(want), "=======\n", "======= theirs (agent-ci)\n"), string(blobOf(t, c, is.NewID)), conflict.Path)
	}
	return moved
}

// blobOf is the content of a file; nothing for one that is not there.
func blobOf(t testing.TB, c *gitops.Checkout, id string) []byte {
	t.Helper()
	if strings.Trim(id, "0") == "" {
		return nil
	}
	content, _, err := c.Blob(id)
	must.Do(t, err)
	defer content.Close()
	data := must.Get(io.ReadAll(content))(t)
	return data
}

func TestRebase(t *testing.T) {
	t.Parallel()
	nothing := func(repo) {}
	three := func(r repo) { r.Write("a", "1\n2\n3\n4\n5\n"); r.Write("keep", "k\n") }
	folders := func(r repo) {
		for _, name := range []string{"1", "2", "3"} {
			r.Write("d/"+name, name+"\n2\n3\n4\n5\n6\n7\n8\n9\n")
		}
	}
	for _, c := range []struct {
		name                string
		base, change, moved func(repo)
		conflict            string // words of the error; "" for none
	}{
		{"other files", three, func(r repo) { r.Write("a", "1\n2\n") }, func(r repo) { r.Write("b", "b\n"); r.Remove("keep") }, ""},
		{"nothing moved", three, func(r repo) { r.Write("new/file", "x\n") }, nothing, ""},
		{"the same change", three, func(r repo) { r.Write("a", "X\n"); r.Write("n", "n\n") }, func(r repo) { r.Write("a", "X\n"); r.Write("n", "n\n") }, ""},
		{"lines apart", three, func(r repo) { r.Write("a", "ONE\n2\n3\n4\n5\n") }, func(r repo) { r.Write("a", "1\n2\n3\n4\nFIVE\n") }, ""},
		{"the same lines", three, func(r repo) { r.Write("a", "ONE\n2\n3\n4\n5\n") }, func(r repo) { r.Write("a", "one\n2\n3\n4\n5\n") }, `"a" (both changed the same lines)`},
		{"mode and lines", three, func(r repo) { r.Chmod("a", 0o755) }, func(r repo) { r.Write("a", "1\n2\n3\n4\nFIVE\n") }, ""},
		{"binary", func(r repo) { r.Write("a", "\x00a") }, func(r repo) { r.Write("a", "\x00b") }, func(r repo) { r.Write("a", "\x00c") }, "binary"},
		{"changed and deleted", three, func(r repo) { r.Write("a", "X\n") }, func(r repo) { r.Remove("a") }, "deleted on the new base"},
		{"deleted and changed", three, func(r repo) { r.Remove("a") }, func(r repo) { r.Write("a", "X\n") }, "deleted here"},
		{"both deleted", three, func(r repo) { r.Remove("a"); r.Write("z", "z\n") }, func(r repo) { r.Remove("a") }, ""},
		{"changed and renamed", three, func(r repo) { r.Write("a", "1\n2\n3\n4\nFIVE\n") }, func(r repo) { r.Git("mv", "a", "b") }, ""},
		{"renamed and changed", three, func(r repo) { r.Git("mv", "a", "b") }, func(r repo) { r.Write("a", "1\n2\n3\n4\nFIVE\n") }, ""},
		{"renamed and changed on both sides", three, func(r repo) { r.Git("mv", "a", "b"); r.Write("b", "ONE\n2\n3\n4\n5\n") }, func(r repo) { r.Write("a", "one\n2\n3\n4\n5\n") }, `"b" (both changed the same lines)`},
		{"renamed in two ways", three, func(r repo) { r.Git("mv", "a", "b") }, func(r repo) { r.Git("mv", "a", "c") }, `"a" is renamed to "b" here, and to "c" on the new base`},
		{"renamed and deleted", three, func(r repo) { r.Git("mv", "a", "b") }, func(r repo) { r.Remove("a") }, `"a" is renamed to "b" here, and deleted on the new base`},
		{"added in a folder that was renamed", folders, func(r repo) { r.Write("d/new", "n\n") }, func(r repo) { r.Git("mv", "d", "e") }, `"d/new" is added here, and its folder is renamed on the new base`},
		{"added in a folder that is renamed here", folders, func(r repo) { r.Git("mv", "d", "e") }, func(r repo) { r.Write("d/new", "n\n") }, `"d/new" is added on the new base, and its folder is renamed here`},
		{"added in a folder of which a part was renamed", folders, func(r repo) { r.Write("d/new", "n\n"); r.Write("d/1", "x\n") }, func(r repo) { r.Git("mv", "d/1", "e1") }, ""},
		{"a part of a folder is renamed here", folders, func(r repo) { r.Git("mv", "d/1", "e1") }, func(r repo) { r.Write("d/new", "n\n"); r.Write("d/1", "1\n2\n3\n4\n5\n6\n7\n8\nnine\n") }, ""},
		{"both added", three, func(r repo) { r.Write("n", "x\n") }, func(r repo) { r.Write("n", "y\n") }, "added here and on the new base"},
		{"a folder for a file", three, func(r repo) { r.Write("n", "x\n") }, func(r repo) { r.Write("n/f", "y\n") }, "folder on the new base"},
		{"a file for a folder", three, func(r repo) { r.Write("n/f", "x\n") }, func(r repo) { r.Write("n", "y\n") }, `"n" (it is a file on the new base, and a folder here)`},
		{"a folder becomes a file", func(r repo) { r.Write("d/1", "1\n") }, func(r repo) { r.Remove("d"); r.Write("d", "file\n") }, func(r repo) { r.Write("other", "o\n") }, ""},
		{"a folder that grew becomes a file", func(r repo) { r.Write("d/1", "1\n") }, func(r repo) { r.Remove("d"); r.Write("d", "file\n") }, func(r repo) { r.Write("d/2", "2\n") }, "folder on the new base"},
		{"a file becomes a folder", three, func(r repo) { r.Remove("a"); r.Write("a/b", "b\n") }, func(r repo) { r.Write("other", "o\n") }, ""},
		{"a link", func(r repo) { r.Link("x", "l") }, func(r repo) { r.Remove("l"); r.Link("y", "l") }, func(r repo) { r.Write("other", "o\n") }, ""},
		{"a link both ways", func(r repo) { r.Link("x", "l") }, func(r repo) { r.Remove("l"); r.Link("y", "l") }, func(r repo) { r.Remove("l"); r.Link("z", "l") }, "link"},
		{"a file that changed becomes a folder", three, func(r repo) { r.Remove("a"); r.Write("a/b", "b\n") }, func(r repo) { r.Write("a", "X\n") }, "deleted here"},
		{"a folder that changed becomes a file", func(r repo) { r.Write("d/1", "1\n") }, func(r repo) { r.Remove("d"); r.Write("d", "file\n") }, func(r repo) { r.Write("d/1", "2\n") }, "deleted here"},
		{"odd names", three, func(r repo) { r.Write("a b\t\"ü\\\n", "x\n") }, func(r repo) { r.Write("ä/\x01", "y\n") }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, after, rebased, err := drifted(t, c.base, c.change, c.moved)
			if c.conflict != "" {
				must.Same(t, "", mergedByGit(r, after), "git's tree")
				var conflict *gitops.MergeError
				if !errors.As(err, &conflict) || !strings.Contains(err.Error(), c.conflict) {
					t.Fatalf("err = %v, want a conflict with %q", err, c.conflict)
				}
				return
			}
			must.Do(t, err)
			must.Same(t, mergedByGit(r, after), string(rebased.Tree), "tree")
			must.Same(t, after, rebased.Base.SHA, "base")
		})
	}
}

// TestRebaseAsGit compares with git's own merge: what Rebase merges, git merges
// to the same tree, and what it does not, git does not.
func TestRebaseAsGit(t *testing.T) {
	t.Parallel()
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
					content, err := os.ReadFile(filepath.Join(r.Dir, s.name))
					switch {
					case err != nil:
						r.Write(s.name, label+"\n")
					case s.kind == 0:
						r.Remove(s.name)
					case s.kind == 1:
						r.Chmod(s.name, 0o755)
					default:
						r.Write(s.name, strings.Replace(string(content), fmt.Sprintf("line %d\n", s.line), label+"\n", 1))
					}
				}
			}
		}
		base := func(r repo) {
			for _, name := range names {
				r.Write(name, lines(12))
			}
		}
		r, after, rebased, err := drifted(t, base, edit("ours"), edit("theirs"))
		if err != nil {
			if !errors.As(err, new(*gitops.MergeError)) {
				rt.Fatal(err)
			}
			if tree := mergedByGit(r, after); tree != "" {
				rt.Fatalf("git merges to %s: %v", tree, err)
			}
			return
		}
		merged++
		if want := mergedByGit(r, after); want != string(rebased.Tree) {
			rt.Fatalf("tree %s, git makes %q:\n%s", rebased.Tree, want, r.Git("diff", want, string(rebased.Tree)))
		}
	})
	if merged == 0 {
		t.Error("nothing was merged")
	}
}

// TestMergesAsGitByAttributes merges one folder for each case. Both sides change lines apart, the same
// line, or add the file; or one side alone changes it. It compares the result with `git merge`.
func TestMergesAsGitByAttributes(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ rules, file string }{
		"none":                 {"", "f"},
		"set":                  {"* merge\n", "f"},
		"unset":                {"f -merge\n", "f"},
		"unspecified":          {"* -merge\nf !merge\n", "f"},
		"text":                 {"* merge=text\n", "f"},
		"binary":               {"*.lock merge=binary\n", "a.lock"},
		"the macro":            {"*.lock binary\n", "d/a.lock"},
		"the macro, undone":    {"* binary\nd/* merge\n", "d/f"},
		"a macro of one's own": {"d/** whole\n", "d/e/f"},
		"union":                {"CHANGES merge=union\n", "CHANGES"},
		"union in a folder":    {"/d/*.md merge=union\n", "d/a.md"},
		"not in that folder":   {"/d/*.md merge=union\n", "e/a.md"},
		"line ends":            {"* text eol=crlf\n", "f"},
		"the length of marks":  {"* conflict-marker-size=9\n", "f"},
		"the last line counts": {"* merge=union\n* -merge\n", "f"},
		"quoted":               {"\"a b\" merge=union\n", "a b"},
		"another case":         {"F merge=union\n", "f"},
		"driver":               {"* merge=ours\n", "f"},
		"driver in a folder":   {"d/** merge=npm-lock\n", "d/package-lock.json"},
		"no driver after all":  {"* merge=ours\nf merge=text\n", "f"},
	}
	lines := "1\n2\n3\n4\n5\n6\n7\n"
	for kind, both := range map[string][3]string{
		"apart":       {lines, "one\n2\n3\n4\n5\n6\n7\n", "1\n2\n3\n4\n5\n6\nseven\n"},
		"together":    {lines, "one\n2\n3\n4\n5\n6\n7\n", "eins\n2\n3\n4\n5\n6\n7\n"},
		"both added":  {"", "one\n", "eins\n"},
		"on one side": {lines, "one\n2\n3\n4\n5\n6\n7\n", lines},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			write := func(text string) func(repo) {
				return func(r repo) {
					for name, c := range cases {
						if text != "" {
							r.Write(name+"/"+c.file, text)
						}
					}
				}
			}
			r, after, rebased, err := drifted(t, func(r repo) {
				r.Write(".gitattributes", "[attr]whole -merge\n")
				for name, c := range cases {
					r.Write(name+"/.gitattributes", c.rules)
				}
				write(both[0])(r)
			}, write(both[1]), write(both[2]))
			got, why := map[string]string{}, map[string]string{}
			for _, f := range rebased.Files {
				got[f.Path] = f.NewID
			}
			if conflict, is := errors.AsType[*gitops.MergeError](err); is {
				for _, c := range conflict.Conflicts {
					why[c.Path] = c.Why
					delete(got, c.Path)
				}
			} else if err != nil {
				t.Fatal(err)
			}
			_ = r.merge(after)
			merged := map[string]string{}
			for _, entry := range zeroSeparated(r.Git("ls-files", "--stage", "-z")) {
				stat, path, _ := strings.Cut(entry, "\t")
				if fields := strings.Fields(stat); fields[2] == "0" {
					merged[path] = fields[1]
				}
			}
			for name, c := range cases {
				path := name + "/" + c.file
				if strings.HasPrefix(name, "driver") && kind != "on one side" {
					must.Contain(t, why[path], "does not run its merge driver")
					continue
				}
				must.Same(t, merged[path], got[path], name)
			}
		})
	}
}

// The attributes are those of the tree that the change goes onto: a change cannot have itself merged
// otherwise, and a base that moved can.
func TestMergesByAttributesOfNewBase(t *testing.T) {
	t.Parallel()
	one := func(text, rules string) func(repo) {
		return func(r repo) {
			r.Write("f", text)
			if rules != "" {
				r.Write(".gitattributes", rules)
			}
		}
	}
	for name, c := range map[string]struct{ change, moved, want string }{
		"of the change":   {"f merge=union\n", "", ""},
		"of the new base": {"", "f merge=union\n", "y\nx\n"},
	} {
		r, after, rebased, err := drifted(t, one("a\n", ""), one("x\n", c.change), one("y\n", c.moved))
		want := mergedByGit(r, after)
		if (err == nil) != (c.want != "") || err == nil && want != string(rebased.Tree) || want != "" && r.Git("show", want+":f")+"\n" != c.want {
			t.Errorf("%s: %v, and git makes %q", name, err, want)
		}
	}
}

// merge has git merge a branch with the work tree's change in a work tree of after.
func (r repo) merge(after string) error {
	r.T.Helper()
	r.Commit("change")
	r.Git("checkout", "-q", "-f", "--detach", after)
	return r.TryGit("merge", "-q", "--no-edit", "main")
}

// mergedByGit is the tree that merge makes; empty for a conflict.
func mergedByGit(r repo, after string) string {
	r.T.Helper()
	if r.merge(after) != nil {
		return ""
	}
	return r.Git("rev-parse", "HEAD^{tree}")
}

func TestReadsObjectsFetchedByGit(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.Write("a", "a\n")
	r.Commit("one")
	elsewhere := at(t, filepath.Join(t.TempDir(), "elsewhere"))
	r.Git("clone", "-q", r.Dir, elsewhere.Dir)
	elsewhere.Write("b/c", "c\n")
	elsewhere.Commit("two")
	tip := elsewhere.Git("rev-parse", "HEAD")
	c := r.open()
	if c.HasCommit(tip) {
		t.Fatal("the commit is here already")
	}
	private, _, err := c.Private()
	must.Do(t, err)
	elsewhere.Git("-c", "fetch.unpackLimit=1", "--git-dir", private, "fetch", "-q", "--depth=1", "file://"+elsewhere.Dir, tip)
	c.ReloadObjects()
	if !c.HasCommit(tip) {
		t.Fatal("the commit is not here")
	}
	onto := must.Get(c.BaseAt("main", tip))(t)
	fresh := materialised(t, c, gitops.TreeForCommands{Tree: onto.Tree, Base: onto}, "")
	must.Same(t, tip, fresh.Git("rev-parse", "HEAD"), "commit")
	must.Same(t, "two", fresh.Git("log", "--format=%s"), "log")
	must.Same(t, "", fresh.Git("status", "--porcelain"), "status")
	must.Fail(t, "", r.TryGit("cat-file", "-e", tip), "what was fetched is in the repository")
	lent, err := filepath.Glob(fresh.Path(".git/objects/pack/*.pack"))
	if err != nil || len(lent) != 1 {
		t.Fatal(lent, err)
	}
	info := must.Get(os.Stat(lent[0]))(t)
	must.Same(t, 1, info.Sys().(*syscall.Stat_t).Nlink, "who writes the pack of a fresh tree writes")
}
