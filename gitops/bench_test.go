package gitops_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/gittest"
)

const manyFiles = 50_000

// manyFilesRepo is a repository of 50,000 small files in 500 folders.
func manyFilesRepo(b *testing.B) repo {
	r := newRepo(b)
	for i := range manyFiles {
		path := r.Path(fmt.Sprintf("d%02d/e%02d/file%05d.txt", i%20, i/20%25, i))
		if i < 500 {
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				b.Fatal(err)
			}
		}
		if err := os.WriteFile(path, fmt.Appendf(nil, "file %d\n", i), 0o666); err != nil {
			b.Fatal(err)
		}
	}
	r.Commit("many files")
	r.Git("gc", "-q")
	return r
}

// BenchmarkOneChangeIn50000 is what gitops adds to a run: from opening the
// checkout to the commit on a branch. Compare with BenchmarkGitAddCommit50000.
func BenchmarkOneChangeIn50000(b *testing.B) {
	r := manyFilesRepo(b)
	git := gittest.Program(b)
	n := 0
	for b.Loop() {
		n++
		c, err := gitops.Open(b.Context(), gitops.Options{Dir: r.Dir, Git: git, State: b.TempDir()})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := c.SetBase(b.Context(), gitops.BaseSpec{}); err != nil {
			b.Fatal(err)
		}
		snap := snapshot(b, c)
		r.Write("d00/e00/file00000.txt", fmt.Sprintf("change %d\n", n))
		cs := changes(b, c, snap)
		sha := commit(b, c, cs)
		if err := c.Switch(b.Context(), fmt.Sprintf("agent-ci/%d", n), sha, cs); err != nil {
			b.Fatal(err)
		}
		if err := c.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGitAddCommit50000 is the measure: the same change by git itself.
func BenchmarkGitAddCommit50000(b *testing.B) {
	r := manyFilesRepo(b)
	n := 0
	for b.Loop() {
		n++
		r.Write("d00/e00/file00000.txt", fmt.Sprintf("change %d\n", n))
		r.Git("add", "-A")
		r.Git("commit", "-q", "-m", "change")
	}
}

// BenchmarkFindAndCommit50000 is what a change costs that was made: to find it, and to make its commit.
// Compare with BenchmarkGitStatus50000.
func BenchmarkFindAndCommit50000(b *testing.B) {
	r := manyFilesRepo(b)
	c := besideOthers(b, r)
	snap := snapshot(b, c)
	n := 0
	for b.Loop() {
		n++
		r.Write("d00/e00/file00000.txt", fmt.Sprintf("change %d\n", n))
		commit(b, c, changes(b, c, snap))
	}
}

// BenchmarkGitStatus50000 is the measure: git finds the same change.
func BenchmarkGitStatus50000(b *testing.B) {
	r := manyFilesRepo(b)
	n := 0
	for b.Loop() {
		n++
		r.Write("d00/e00/file00000.txt", fmt.Sprintf("change %d\n", n))
		r.Git("status", "--porcelain")
	}
}

// BenchmarkTreeOfACheck is what the tree of one check costs, in a repository of 50,000 files and
// 10,000 tags: a git folder above the checkout, and a tree that is checked out.
func BenchmarkTreeOfACheck(b *testing.B) {
	r := manyFilesRepo(b)
	var refs bytes.Buffer
	for i := range 10_000 {
		fmt.Fprintf(&refs, "create refs/tags/v0.%d HEAD\n", i)
	}
	r.GitWith(nil, refs.Bytes(), "update-ref", "--stdin")
	r.Git("pack-refs", "--all")
	c := r.open()
	snap := snapshot(b, c)
	r.Write("d00/e00/file00000.txt", "change\n")
	cs := changes(b, c, snap)
	shown := gitops.Shown{Tree: cs.Tree, Snapshot: snap, Head: &gitops.Head{Branch: "change", Commit: func() (gitops.CommitOptions, error) {
		return gitops.CommitOptions{Message: "change"}, nil
	}}}
	b.Run("git folder", func(b *testing.B) {
		for b.Loop() {
			folder := gitops.GitFolder{Dir: filepath.Join(b.TempDir(), ".git"), Shown: shown}
			if err := c.MakeGitFolder(b.Context(), folder); err != nil {
				b.Fatal(err)
			}
			if err := c.Stage(b.Context(), folder, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("checked out", func(b *testing.B) {
		for b.Loop() {
			if err := c.Materialise(b.Context(), gitops.MaterialiseOptions{Dir: filepath.Join(b.TempDir(), "tree"), Shown: shown}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
