package index

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/gitops/gittest"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

// gitIn is the output of git in dir.
func gitIn(t testing.TB, dir string, args ...string) string {
	t.Helper()
	return gittest.Repo{T: t, Dir: dir}.Git(args...)
}

func repository(t testing.TB, version string) string {
	t.Helper()
	dir := t.TempDir()
	gitIn(t, dir, "init", "-q")
	for _, name := range []string{"a", "a-b", "a.b", "d/e/f", "d/e/g", "d/x", "z", strings.Repeat("long/", 900) + "name"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if len(path) > 4000 {
			continue // the file system takes no longer path
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	gitIn(t, dir, "add", "-A")
	gitIn(t, dir, "update-index", "--index-version", version)
	gitIn(t, dir, "update-index", "--assume-unchanged", "z")
	gitIn(t, dir, "update-index", "--skip-worktree", "d/x")
	gitIn(t, dir, "commit", "-q", "-m", "seed")
	return dir
}

func read(t testing.TB, dir string) *File {
	t.Helper()
	f, err := Read(filepath.Join(dir, ".git", "index"))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// staged is f as `git ls-files --stage` lists it.
func staged(f *File) string {
	var b strings.Builder
	for i := range f.Len() {
		e := f.Entry(i)
		fmt.Fprintf(&b, "%06o %s %d\t%s\n", e.Mode, e.ID, e.Stage, e.Path)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func TestReadAndWriteAsGitDoes(t *testing.T) {
	for _, version := range []string{"2", "3", "4"} {
		t.Run("version "+version, func(t *testing.T) {
			dir := repository(t, version)
			f := read(t, dir)
			if d := cmp.Diff(gitIn(t, dir, "ls-files", "--stage"), staged(f)); d != "" {
				t.Errorf("entries (-git +read):\n%s", d)
			}
			z, _ := f.Search("z")
			x, _ := f.Search("d/x")
			if !f.Entry(z).AssumeValid || !f.Entry(x).SkipWorktree {
				t.Error("the flags of an entry are lost")
			}
			if c := f.CachedTree(); !c.Valid || c.ID.String() != gitIn(t, dir, "rev-parse", "HEAD^{tree}") {
				t.Errorf("the tree of the index is not known: %v", c)
			}

			blob := plumbing.NewHash(gitIn(t, dir, "hash-object", "-w", "a"))
			rewrite(t, dir, f, []Update{
				{Path: "a", Entry: &Entry{Path: "a", Mode: Executable, ID: blob}},
				{Path: "a.b"},
				{Path: "d/e/new", Entry: &Entry{Path: "d/e/new", Mode: Regular, ID: blob}},
				{Path: "none"},
			})
			again := read(t, dir)
			if d := cmp.Diff(gitIn(t, dir, "ls-files", "--stage"), staged(again)); d != "" {
				t.Errorf("entries after writing (-git +read):\n%s", d)
			}
			if !strings.Contains(gitIn(t, dir, "ls-files", "-v"), "h z") {
				t.Error("git does not see the flag of z")
			}
			treeIsRight(t, dir)
		})
	}
}

func rewrite(t *testing.T, dir string, f *File, updates []Update) {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, f, updates); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".git", "index"), b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

// treeIsRight compares the tree that git makes of the index, for which it
// believes what the index says of folders, with one that it makes of the
// entries alone.
func treeIsRight(t *testing.T, dir string) {
	t.Helper()
	believed := gitIn(t, dir, "write-tree")
	entries := gitIn(t, dir, "ls-files", "--stage")
	if err := os.Remove(filepath.Join(dir, ".git", "index")); err != nil {
		t.Fatal(err)
	}
	gittest.Repo{T: t, Dir: dir}.GitWith(nil, []byte(entries+"\n"), "update-index", "--index-info")
	if alone := gitIn(t, dir, "write-tree"); alone != believed {
		t.Errorf("the tree is %q, of the entries alone %q", believed, alone)
	}
}

func TestStatDataAloneKeepsTheTree(t *testing.T) {
	dir := repository(t, "2")
	f := read(t, dir)
	at, _ := f.Search("d/e/f")
	e := f.Entry(at)
	e.Stat = Stat{MtimeSec: 1, Size: 5}
	rewrite(t, dir, f, []Update{{Path: e.Path, Entry: &e}})
	if again := read(t, dir); !again.CachedTree().Valid || again.Entry(at).Stat != e.Stat {
		t.Errorf("got %+v, tree known: %v", again.Entry(at), again.CachedTree().Valid)
	}
}

// FuzzParse: whatever the bytes are, they are refused or every entry can be
// read.
func FuzzParse(f *testing.F) {
	for _, version := range []string{"2", "4"} {
		data, err := os.ReadFile(filepath.Join(repository(f, version), ".git", "index"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(data[:len(data)-30])
	}
	f.Add([]byte("DIRC\x00\x00\x00\x02\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		parsed, err := Parse(data)
		if err != nil {
			return
		}
		for i := range parsed.Len() {
			parsed.Entry(i)
		}
		parsed.CachedTree()
		parsed.Search("d/e/f")
	})
}
