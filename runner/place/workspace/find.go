package workspace

import (
	"path/filepath"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/internal/pathname"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

// SearchPath is a PATH without what lies in the checkout that dir is in: commands may have put programs
// there.
func SearchPath(path, dir string) string {
	root, _ := gitops.WorkTree(dir)
	return gitops.PathOutside(path, root)
}

// FindGit finds the git program on a PATH for the checkout that dir lies in, and
// none that lies in it: commands may have put it there.
func FindGit(path, dir string) string {
	return gitops.FindGit(SearchPath(path, dir), "")
}

// OutsideCheckout refuses a run directory that would become a part of the change:
// one in the checkout that dir is in.
func OutsideCheckout(path, dir string) error {
	root, ok := gitops.WorkTree(dir)
	if !ok {
		return nil
	}
	for at := path; ; at = filepath.Dir(at) {
		real, err := filepath.EvalSymlinks(at)
		if err != nil && at != filepath.Dir(at) {
			continue // not there yet
		}
		if pathname.Within(real, root) {
			return outcome.Stopf(outcome.InvalidInput, "run_directory",
				"The run directory %s is in the checkout, where it would become part of the change; give one outside with --out.", path)
		}
		return nil
	}
}
