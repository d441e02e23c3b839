package workspace

import (
	"path/filepath"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/pathname"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

// SearchPath removes folders inside dir's checkout from a PATH, since commands may have put
// programs there.
func SearchPath(path, dir string) string {
	root, _ := gitops.WorkTree(dir)
	return gitops.PathOutside(path, root)
}

// FindGit finds git on a PATH outside dir's checkout, where commands may have put one.
func FindGit(path, dir string) string {
	return gitops.FindGit(SearchPath(path, dir), "")
}

// OutsideCheckout refuses a run directory inside dir's checkout, because the change would include
// it.
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
