package worktree_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/lfs"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
	"github.com/agent-ci/agent-ci/gitops/internal/scan"
	"github.com/agent-ci/agent-ci/gitops/internal/worktree"
	"github.com/agent-ci/agent-ci/policy/must"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

// checkout is a work tree that is opened, and what it needs.
type checkout struct {
	gittest.Repo
	repo    *repository.Repository
	objects *objects.Store
	work    *worktree.Worktree
}

// open opens the work tree of r.
func open(t testing.TB, r gittest.Repo) checkout {
	t.Helper()
	return openWith(t, r, gittest.Program(t))
}

func openWith(t testing.TB, r gittest.Repo, git string) checkout {
	t.Helper()
	repo := must.Get(repository.Open(t.Context(), r.Dir, git, t.TempDir(), ""))(t)
	store := objects.Open(repo.PrivateDir, repo.ObjectFolders...)
	work := must.Get(worktree.Open(repo, store))(t)
	listed := map[string][]string{}
	for _, name := range repo.Settings.FilterNames() {
		listed[name] = nil
	}
	work.Filters = worktree.Filters{Open: unconfined, Listed: listed, LFS: lfs.Store{OwnFolder: filepath.Join(t.TempDir(), "lfs"), Shared: []string{r.Path(".git/lfs")}}}
	t.Cleanup(func() {
		for _, close := range []func() error{work.Close, store.Close, repo.Close} {
			must.Is(t, nil, close())
		}
	})
	return checkout{r, repo, store, work}
}

// unconfined is a place for any filter.
func unconfined(context.Context, worktree.Filter) (worktree.FilterSandbox, error) {
	return gittest.Shell{Failed: func(status int, words string) error { return &worktree.CommandError{Status: status, Words: words} }}, nil
}

func (c checkout) index() *index.File {
	c.T.Helper()
	return must.Get(c.repo.Index(c.T.Context()))(c.T)
}

func (c checkout) id(spec string) plumbing.Hash {
	c.T.Helper()
	return plumbing.NewHash(c.Git("rev-parse", spec))
}

// differences are those from one tree of git's to another; "" is the empty one.
func (c checkout) differences(from, to string) []objects.Difference {
	c.T.Helper()
	old := plumbing.ZeroHash
	if from != "" {
		old = c.id(from + "^{tree}")
	}
	return must.Get(c.objects.Differences(c.T.Context(), old, c.id(to+"^{tree}")))(c.T)
}

var kinds = map[scan.Kind]string{
	scan.Deleted: "deleted", scan.Submodule: "submodule", scan.Untracked: "untracked", scan.Ignored: "ignored",
	scan.Repository: "repository", scan.InvalidName: "invalid", scan.TooDeep: "too deep", scan.Unreadable: "unreadable",
}

// extent is what of the findings of a scan a test looks at.
type extent int

const (
	untrackedToo extent = iota // cleans untracked files, and omits ignored ones
	ignoredToo                 // cleans tracked files only
)

// scan lists what a scan finds, with the suspects once they are clean: "changed"
// or "alike", or why they are left out.
func (c checkout) scan(wanted extent) []string {
	c.T.Helper()
	s, found := c.scanned(wanted)
	var list []string
	for _, f := range found {
		list = append(list, kinds[f.Kind]+" "+f.Path)
	}
	for i := range s.Suspects {
		one := &s.Suspects[i]
		what := "changed"
		switch {
		case one.TooLarge:
			what = "too large"
		case one.Why != "":
			what = "left out"
		case s.AsIndexed(one):
			what = "alike"
		}
		list = append(list, fmt.Sprintf("%s %s", what, one.Path))
	}
	slices.Sort(list)
	return list
}

// stored is what git would store of a file that the index has not as it is.
func (c checkout) stored(path string) string {
	c.T.Helper()
	data := must.Get(c.objects.BlobBytes(c.suspect(path).ID, 1<<20))(c.T)
	return string(data)
}

// suspect is what a scan finds out of one file.
func (c checkout) suspect(path string) scan.Suspect {
	c.T.Helper()
	s, _ := c.scanned(untrackedToo)
	for _, one := range s.Suspects {
		if one.Path == path {
			return one
		}
	}
	c.T.Fatalf("%s is no suspect", path)
	return scan.Suspect{}
}

// scanned scans the work tree and cleans what is suspect, untracked files included if the extent has them.
func (c checkout) scanned(wanted extent) (*scan.Scan, []scan.Found) {
	c.T.Helper()
	var mu sync.Mutex
	var found []scan.Found
	var s *scan.Scan
	s = scan.New(c.work.ScanTree(), c.index(), func(f scan.Found) {
		mu.Lock()
		defer mu.Unlock()
		if f.Kind == scan.Ignored && wanted == untrackedToo {
			return
		}
		found = append(found, f)
		if f.Kind == scan.Untracked && wanted == untrackedToo {
			s.Suspect(f)
		}
	})
	must.Do(c.T, errors.Join(s.Run(c.T.Context()), c.work.StoreSuspects(c.T.Context(), s)))
	return s, found
}
