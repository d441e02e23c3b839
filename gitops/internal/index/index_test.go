package index

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

func repository(t testing.TB, version string) gittest.Repo {
	t.Helper()
	r := gittest.New(t)
	for _, name := range []string{"a", "a-b", "a.b", "d/e/f", "d/e/g", "d/x", "z", strings.Repeat("long/", 900) + "name"} {
		if len(r.Path(name)) <= 4000 { // the file system takes no longer path
			r.Write(name, name)
		}
	}
	r.Git("add", "-A")
	r.Git("update-index", "--index-version", version)
	r.Git("update-index", "--assume-unchanged", "z")
	r.Git("update-index", "--skip-worktree", "d/x")
	r.Git("commit", "-q", "-m", "seed")
	return r
}

func read(r gittest.Repo) *File {
	r.T.Helper()
	return must.Get(Read(r.Path(".git/index")))(r.T)
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

func TestReadsAndWritesLikeGit(t *testing.T) {
	for _, version := range []string{"2", "3", "4"} {
		t.Run("version "+version, func(t *testing.T) {
			r := repository(t, version)
			f := read(r)
			must.Same(t, r.Git("ls-files", "--stage"), staged(f), "entries")
			z, _ := f.Search("z")
			x, _ := f.Search("d/x")
			if !f.Entry(z).AssumeValid || !f.Entry(x).SkipWorktree {
				t.Error("the flags of an entry are lost")
			}
			if c := f.CachedTree(); !c.Valid || c.ID.String() != r.Git("rev-parse", "HEAD^{tree}") {
				t.Errorf("the tree of the index is not known: %v", c)
			}

			blob := plumbing.NewHash(r.Git("hash-object", "-w", "a"))
			rewrite(r, f, []Entry{
				{Path: "a", Mode: Executable, ID: blob},
				{Path: "a.b"},
				{Path: "d/e/new", Mode: Regular, ID: blob},
				{Path: "none"},
			})
			again := read(r)
			must.Same(t, r.Git("ls-files", "--stage"), staged(again), "entries after writing")
			must.Contain(t, r.Git("ls-files", "-v"), "h z")
			treeIsRight(r)
		})
	}
}

func rewrite(r gittest.Repo, f *File, updates []Entry) {
	r.T.Helper()
	var b bytes.Buffer
	must.Do(r.T, Write(&b, f, updates))
	r.Write(".git/index", b.String())
}

// treeIsRight compares the tree that git makes of the index, for which it
// believes what the index says of folders, with one that it makes of the
// entries alone.
func treeIsRight(r gittest.Repo) {
	r.T.Helper()
	believed := r.Git("write-tree")
	entries := r.Git("ls-files", "--stage")
	r.Remove(".git/index")
	r.GitWith(nil, []byte(entries+"\n"), "update-index", "--index-info")
	must.Same(r.T, believed, r.Git("write-tree"), "the tree")
}

func TestStatUpdateKeepsCachedTree(t *testing.T) {
	r := repository(t, "2")
	f := read(r)
	at, _ := f.Search("d/e/f")
	e := f.Entry(at)
	e.Stat = Stat{MtimeSec: 1, Size: 5}
	rewrite(r, f, []Entry{e})
	if again := read(r); !again.CachedTree().Valid || again.Entry(at).Stat != e.Stat {
		t.Errorf("got %+v, tree known: %v", again.Entry(at), again.CachedTree().Valid)
	}
}

// FuzzParse: whatever the bytes are, they are refused or every entry can be
// read.
func FuzzParse(f *testing.F) {
	for _, version := range []string{"2", "4"} {
		data := must.Get(os.ReadFile(repository(f, version).Path(".git/index")))(f)
		f.Add(data)
		f.Add(data[:len(data)-30])
	}
	f.Add([]byte("DIRC\x00\x00\x00\x02\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		parsed, err := parse(data)
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
