package gitops_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/must"
)

// What the agent writes into .git must never be run by us.
func TestRunsNoAgentPrograms(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(c *gitops.Checkout, cs *gitops.ChangeSet) error{
		"switch": func(c *gitops.Checkout, cs *gitops.ChangeSet) error {
			return c.Switch(t.Context(), "agent-ci/x", commit(t, c, cs), cs)
		},
		"files alone": func(c *gitops.Checkout, cs *gitops.ChangeSet) error { return c.ApplyChange(t.Context(), cs) },
	} {
		t.Run(name, func(t *testing.T) {
			r := twoBranches(t)
			c := r.open()
			must.Get(c.SetBase(gitops.BaseSpec{Branch: "older"}))(t)
			tree, in, snap, _ := private(t, c)
			edit(tree)
			sprung := trapped(t, tree)
			cs := changes(t, in, snap)
			must.Same(t, []string{"A .gitattributes", "M README"}, nameStatus(cs), "change")
			var out bytes.Buffer
			must.Do(t, c.WritePatch(t.Context(), cs, &out))
			materialised(t, c, gitops.TreeForCommands{Tree: cs.Tree}, "").Git("status")
			must.Do(t, end(c, cs))
			must.Same(t, []string{}, sprung(), "what ran")
		})
	}
}

// trapped sets traps: programs that a git would run on its own and that write
// a file when they are.
func trapped(t *testing.T, r repo) (sprung func() []string) {
	t.Helper()
	marks := t.TempDir()
	mark := func(name string) string { return "touch " + filepath.Join(marks, name) }
	for _, hook := range []string{
		"pre-commit", "post-commit", "post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc", "post-merge",
	} {
		r.Write(".git/hooks/"+hook, "#!/bin/sh\n"+mark(hook)+"\n")
		r.Chmod(".git/hooks/"+hook, 0o755)
	}
	for _, v := range [][2]string{
		{"core.fsmonitor", mark("fsmonitor")},
		{"core.pager", mark("pager")},
		{"core.editor", mark("editor")},
		{"diff.external", mark("diff")},
		{"diff.mine.textconv", mark("textconv")},
		{"diff.mine.command", mark("command")},
		{"filter.mine.clean", mark("clean")},
		{"filter.mine.smudge", mark("smudge")},
		{"filter.mine.process", mark("process")},
		{"gpg.program", mark("gpg")},
		{"commit.gpgSign", "true"},
		{"alias.diff-tree", "!" + mark("alias")},
	} {
		r.GitWith([]string{"GIT_DIR=" + r.Path(".git")}, nil, "config", v[0], v[1])
	}
	r.Write(".gitattributes", "* diff=mine filter=mine\n")
	return func() []string {
		entries := must.Get(os.ReadDir(marks))(t)
		names := []string{}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
}
