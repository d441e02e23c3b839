package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
)

// layeredTree keeps the git folders of an overlay below a path, and no changes.
type layeredTree struct{ privateTree }

func (layeredTree) Private() bool           { return false }
func (layeredTree) HasChanges(Changes) bool { return false }
func (layeredTree) Drop(Changes) error      { return nil }

func (l layeredTree) GitFolder(of string) string { return filepath.Join(string(l.privateTree), of) }

func (l layeredTree) CopySetupGit(context.Context) error {
	setup, agent := l.GitFolder(OfSetup), l.GitFolder(OfAgent)
	if _, err := os.Lstat(setup); err != nil {
		return os.RemoveAll(agent)
	}
	return errors.Join(os.RemoveAll(agent), os.CopyFS(agent, os.DirFS(setup)))
}

// An index can be large, so only the git folders that commands use next have one.
func TestKeepsOneIndexForCommands(t *testing.T) {
	repo := gittest.Seeded(t)
	w := opened(t, repo.Dir)
	tree := layeredTree{privateTree(t.TempDir())}
	must.Do(t, w.UseTree(t.Context(), tree))
	must.Do(t, w.TakeSnapshot(t.Context()))
	git := func(of string, args ...string) string {
		return repo.Git(append([]string{"--git-dir=" + tree.GitFolder(of), "--work-tree=" + repo.Dir}, args...)...)
	}
	wantIndex := func(of string, want bool) {
		t.Helper()
		if _, err := os.Lstat(filepath.Join(tree.GitFolder(of), "index")); errors.Is(err, fs.ErrNotExist) == want {
			t.Errorf("%s: %v", of, err)
		}
	}
	wantIndex(OfSetup, false)
	must.Same(t, "", git(OfAgent, "status", "--porcelain"), "the agent's status")

	must.Do(t, w.BeginSetup(t.Context()))
	repo.Write("staged", "by setup\n")
	git(OfSetup, "add", "staged")
	must.Do(t, w.TakeSnapshot(t.Context()))
	wantIndex(OfSetup, false)
	must.Contain(t, git(OfAgent, "status", "--porcelain"), "A  staged")
}
