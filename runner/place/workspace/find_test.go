package workspace

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
)

func TestRefusesRunDirectoryInCheckout(t *testing.T) {
	repo, outside := gittest.Seeded(t), t.TempDir()
	repo.Link(outside, "leads-out")
	hollow := t.TempDir()
	must.Do(t, os.Mkdir(filepath.Join(hollow, ".git"), 0o700))
	must.Do(t, os.Symlink(repo.Path("src"), filepath.Join(outside, "leads-in")))
	for name, test := range map[string]struct{ path, dir, reason string }{
		"in it":                 {repo.Path("out"), repo.Dir, "run_directory"},
		"deep, not there yet":   {repo.Path("a/b/c"), repo.Path("src/deep"), "run_directory"},
		"itself":                {repo.Dir, repo.Dir, "run_directory"},
		"through a link":        {filepath.Join(outside, "leads-in", "out"), repo.Dir, "run_directory"},
		"a link that leads out": {repo.Path("leads-out/out"), repo.Dir, ""},
		"beside it":             {repo.Dir + "-out", repo.Dir, ""},
		"no checkout":           {filepath.Join(outside, "out"), outside, ""},
		"an empty .git above":   {filepath.Join(hollow, "out"), hollow, ""},
		"no folder":             {filepath.Join(outside, "out"), filepath.Join(outside, "missing"), ""},
	} {
		t.Run(name, func(t *testing.T) { outcometest.Want(t, RequireOutsideCheckout(test.path, test.dir, ""), test.reason) })
	}
	t.Chdir(repo.Path("src"))
	outcometest.Want(t, RequireOutsideCheckout(repo.Path("out"), "", ""), "run_directory") // the current folder
}

func TestUsesNoGitFromCheckout(t *testing.T) {
	repo, elsewhere := gittest.Seeded(t), t.TempDir()
	for _, dir := range []string{repo.Path("bin"), elsewhere} {
		must.Do(t, os.MkdirAll(dir, 0o700))
		must.Do(t, os.WriteFile(filepath.Join(dir, "git"), []byte("#!/bin/sh\n"), 0o700))
	}
	path := repo.Path("bin") + string(os.PathListSeparator) + elsewhere
	must.Same(t, filepath.Join(elsewhere, "git"), FindGit(path, repo.Path("src")), "found")
	must.Same(t, repo.Path("bin/git"), FindGit(path, elsewhere), "found")
}
