package index

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/google/go-cmp/cmp"
)

// gitIn runs git in dir without anybody's configuration.
func gitIn(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull, "HOME="+dir,
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.org")
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, complaint.String())
	}
	return out.String()
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
	return b.String()
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
			if c := f.CachedTree(); !c.Valid || c.ID.String() != strings.TrimSpace(gitIn(t, dir, "rev-parse", "HEAD^{tree}")) {
				t.Errorf("the tree of the index is not known: %v", c)
			}

			blob := plumbing.NewHash(strings.TrimSpace(gitIn(t, dir, "hash-object", "-w", "a")))
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
			if !strings.Contains(gitIn(t, dir, "ls-files", "-v"), "h z\n") {
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
	cmd := exec.Command("git", "update-index", "--index-info")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(entries)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
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

func TestFolder(t *testing.T) {
	f := read(t, repository(t, "4"))
	lo, hi := f.Folder("d/e/", 0, f.Len())
	var got []string
	for i := lo; i < hi; i++ {
		got = append(got, string(f.Path(i)))
	}
	if d := cmp.Diff([]string{"d/e/f", "d/e/g"}, got); d != "" {
		t.Error(d)
	}
	if lo, hi := f.Folder("none/", 0, f.Len()); lo != hi {
		t.Errorf("a folder that is not there has %d entries", hi-lo)
	}
}

func TestReadOfNoFileIsEmpty(t *testing.T) {
	f, err := Read(filepath.Join(t.TempDir(), "none"))
	if err != nil || f.Len() != 0 {
		t.Errorf("%d entries, %v", f.Len(), err)
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
