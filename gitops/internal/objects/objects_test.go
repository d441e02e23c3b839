package objects_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/policy/must"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

// emptyStore is a git folder without objects.
func emptyStore(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, sub := range []string{"objects/pack", "objects/info"} {
		must.Do(t, os.MkdirAll(filepath.Join(dir, sub), 0o777))
	}
	return dir
}

func open(t testing.TB, own string, borrowed ...string) *objects.Store {
	t.Helper()
	s := objects.Open(own, borrowed...)
	t.Cleanup(func() {
		must.Is(t, nil, s.Close())
	})
	return s
}

// looseIn lists the ids of the loose objects in a git folder.
func looseIn(t testing.TB, gitDir string) []string {
	t.Helper()
	list := must.Get(filepath.Glob(filepath.Join(gitDir, "objects", "??", "*")))(t)
	var ids []string
	for _, path := range list {
		ids = append(ids, filepath.Base(filepath.Dir(path))+filepath.Base(path))
	}
	slices.Sort(ids)
	return ids
}

func revision(r gittest.Repo, spec string) plumbing.Hash {
	r.T.Helper()
	return plumbing.NewHash(r.Git("rev-parse", spec))
}
