package gitops_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

// repo is a checkout made by the git program.
type repo struct{ gittest.Repo }

func newRepo(t testing.TB) repo {
	t.Helper()
	return repo{gittest.New(t)}
}

// seededRepo has the commit of Seed.
func seededRepo(t testing.TB) repo {
	t.Helper()
	return repo{gittest.Seeded(t)}
}

// at is a repository that is there already.
func at(t testing.TB, dir string) repo { return repo{gittest.Repo{T: t, Dir: dir}} }

// filesBut is files without one that cannot be read.
func (r repo) filesBut(name string) map[string]string {
	r.T.Helper()
	aside := filepath.Join(r.T.TempDir(), "aside")
	must.Do(r.T, os.Rename(r.Path(name), aside))
	list := r.Files()
	must.Do(r.T, os.Rename(aside, r.Path(name)))
	return list
}

func (r repo) open() *gitops.Checkout {
	r.T.Helper()
	c := must.Get(gitops.Open(r.T.Context(), gitops.Options{Dir: r.Dir, Git: gittest.Program(r.T), State: r.T.TempDir(), OpenFilter: unconfined, LFS: filepath.Join(r.T.TempDir(), "lfs")}))(r.T)
	c.AllowFilters(map[string][]string{"caps": nil, "large": nil})
	r.T.Cleanup(func() {
		must.Is(r.T, nil, c.Close())
	})
	return c
}

// unconfined is a place for any filter.
func unconfined(context.Context, gitops.Filter) (gitops.FilterSandbox, error) {
	return gittest.Shell{Failed: func(status int, words string) error { return &gitops.CommandError{Status: status, Words: words} }}, nil
}

func snapshot(t testing.TB, c *gitops.Checkout) *gitops.Snapshot {
	t.Helper()
	snap := must.Get(c.Snapshot(t.Context()))(t)
	if dirty := snap.Dirty(); len(dirty) > 0 {
		t.Fatalf("dirty before anything was done: %q", dirty)
	}
	return snap
}

func changes(t testing.TB, c *gitops.Checkout, snap *gitops.Snapshot) *gitops.ChangeSet {
	t.Helper()
	return must.Get(c.Changes(t.Context(), snap))(t)
}

func commit(t testing.TB, c *gitops.Checkout, cs *gitops.ChangeSet) string {
	t.Helper()
	who := gitops.Signature{Name: "agent-ci", Email: "agent-ci@noreply.invalid", When: time.Unix(1_700_000_000, 0)}
	sha := must.Get(c.WriteCommit(t.Context(), cs, gitops.CommitOptions{
		Message: "Change it\n\nWhy.\n\nAgent-CI-Run: r1\nAgent-CI-Base: " + cs.Base.SHA + "\n", Author: who, Committer: who,
	}))(t)
	return sha
}

// untracked is a copy of what is not tracked, of which a snapshot tells.
func untracked(t testing.TB, c *gitops.Checkout, snap *gitops.Snapshot) repo {
	t.Helper()
	kept := at(t, filepath.Join(t.TempDir(), "kept"))
	must.Do(t, c.CopyUntracked(t.Context(), snap, kept.Dir))
	return kept
}

// materialised is a fresh tree, with the untracked files of a folder or of none.
func materialised(t testing.TB, c *gitops.Checkout, tree gitops.TreeForCommands, untracked string) repo {
	t.Helper()
	fresh := at(t, filepath.Join(t.TempDir(), "fresh"))
	must.Do(t, c.Materialise(t.Context(), gitops.MaterialiseOptions{Dir: fresh.Dir, Untracked: untracked, TreeForCommands: tree}))
	return fresh
}

// nameStatus is a change set as `git diff --name-status` writes it.
func nameStatus(cs *gitops.ChangeSet) []string {
	var list []string
	for _, f := range cs.Files {
		list = append(list, string(f.Status)+" "+f.Path)
	}
	slices.Sort(list)
	return list
}

func (r repo) diffNameStatus(a, b string) []string {
	r.T.Helper()
	parts := zeroSeparated(r.Git("diff", "--no-renames", "--name-status", "-z", a, b))
	var list []string
	for i := 0; i+1 < len(parts); i += 2 {
		list = append(list, parts[i]+" "+parts[i+1])
	}
	slices.Sort(list)
	return list
}

func (r repo) status() []string {
	r.T.Helper()
	return zeroSeparated(r.Git("status", "--porcelain", "-z", "--untracked-files=all"))
}

func zeroSeparated(out string) []string {
	if out == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
}

// reread compares the work tree with HEAD by content alone.
func (r repo) reread() []string {
	r.T.Helper()
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(r.T.TempDir(), "index")}
	r.GitWith(env, nil, "read-tree", "HEAD")
	return zeroSeparated(r.GitWith(env, nil, "status", "--porcelain", "-z", "--untracked-files=no"))
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
