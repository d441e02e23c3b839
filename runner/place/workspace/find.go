package workspace

import (
	"fmt"
	"path/filepath"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/pathname"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

// SearchPath returns a PATH without the folders in dir's checkout. Commands may have put programs
// there.
func SearchPath(path, dir string) string {
	root, _ := gitops.WorkTree(dir)
	return gitops.SearchPathOutside(path, root)
}

// FindGit returns the git program on a PATH. It skips dir's checkout, where commands may have put
// one.
func FindGit(path, dir string) string {
	root, _ := gitops.WorkTree(dir)
	return gitops.FindGit(path, root)
}

// MakeRunDirectory makes rec's run directory, at out or in the usual place, and begins the
// transcript. get reads environment variables. checkout is a folder in the run's checkout.
func MakeRunDirectory(rec *record.Record, get func(variable string) string, out, checkout string, show record.Show) error {
	named := out != ""
	if !named {
		var err error
		if out, err = record.DefaultPath(get, rec.ID, "give another with --out"); err != nil {
			return err
		}
	}
	path, err := filepath.Abs(out)
	if err != nil {
		return fmt.Errorf("find run directory: %w", err)
	}
	if err := RequireOutsideCheckout(path, checkout, "give one outside with --out"); err != nil {
		return err
	}
	if err := rec.Make(path, show); err != nil {
		return err
	}
	if named {
		record.NoteElsewhere(get, rec.ID, path)
	}
	return nil
}

// RequireOutsideCheckout returns an error for a run directory inside dir's checkout, because the
// change would include it. advice tells the user how to choose another.
func RequireOutsideCheckout(path, dir, advice string) error {
	root, ok := gitops.WorkTree(dir)
	if !ok {
		return nil
	}
	for at := path; ; at = filepath.Dir(at) {
		real, err := filepath.EvalSymlinks(at)
		if err != nil && at != filepath.Dir(at) {
			continue // this part of the path does not exist yet
		}
		if pathname.IsInAny(real, root) {
			return outcome.Stopf(outcome.InvalidInput, "run_directory",
				"The run directory %s is in the checkout, where it would become part of the change; %s.", path, advice)
		}
		return nil
	}
}
