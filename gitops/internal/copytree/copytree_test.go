package copytree_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/gitops/internal/copytree"
	"github.com/agent-ci/agent-ci/policy/must"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

// What stands in a tree stays, and nothing is copied through a link in it.
func TestIntoOverwritesNothing(t *testing.T) {
	from, to, aside := gittest.New(t), gittest.New(t), gittest.New(t)
	for name, content := range map[string]string{"file": "theirs\n", "folder/new": "n\n", "linked/new": "n\n", "blocked/new": "n\n", "plain": "p\n"} {
		from.Write(name, content)
	}
	from.Chmod("plain", 0o751)
	from.Link("somewhere", "link")
	to.Write("file", "mine\n")
	to.Write("folder/old", "o\n")
	to.Write("blocked", "a file\n")
	to.Link(aside.Dir, "linked")
	from.Remove(".git")
	root := must.Get(os.OpenRoot(to.Dir))(t)
	defer root.Close()
	for _, source := range []string{filepath.Join(t.TempDir(), "none"), from.Dir, from.Dir} {
		must.Do(t, copytree.Into(t.Context(), root, source))
	}
	must.Same(t, map[string]string{
		"file": "mine\n", "folder/old": "o\n", "folder/new": "n\n", "blocked": "a file\n", "linked": "-> " + aside.Dir, "link": "-> somewhere", "plain": "x p\n",
	}, to.Files(), "copied")
	must.Same(t, map[string]string{}, aside.Files(), "aside")
	was := must.Get(os.Stat(from.Path("plain")))(t)
	if is, err := os.Stat(to.Path("plain")); err != nil || !is.ModTime().Equal(was.ModTime()) {
		t.Errorf("another time: %v", err)
	}
}
