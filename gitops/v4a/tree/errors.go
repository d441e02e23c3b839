package tree

import (
	"fmt"
	"strings"
)

// PathError reports a path that a patch may not change, or a file unfit for the operation. Nothing
// was written.
type PathError struct {
	Path    string // as written in the patch
	Line    int    // of the section's header in the patch; 0 in a bare diff
	Problem string
	Err     error // the error of the file system, or nil
}

func (e *PathError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.Path, e.Problem)
	}
	return fmt.Sprintf("%s (line %d of the patch): %s", e.Path, e.Line, e.Problem)
}

func (e *PathError) Unwrap() error { return e.Err }

// ChangedError reports a file that changed after the plan was made.
type ChangedError struct {
	Path   string
	Reason string
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s changed while the patch was being applied (%s): read it again and make a new patch", e.Path, e.Reason)
}

// CommitError reports a failed write. The tree is as before, except for the files in Unrestored and
// Leftover.
type CommitError struct {
	Path       string   // the file at which it failed
	Err        error    // why
	Unrestored []string // files that could not be restored, with the place of their old content
	Leftover   []string // temporary files and new directories that could not be removed
}

func (e *CommitError) Error() string {
	text := fmt.Sprintf("write %s: %v; ", e.Path, e.Err)
	if len(e.Unrestored) == 0 {
		text += "nothing was changed"
	} else {
		text += "could not be put back: " + strings.Join(e.Unrestored, ", ")
	}
	if len(e.Leftover) > 0 {
		text += "; could not be removed, so remove: " + strings.Join(e.Leftover, ", ")
	}
	return text
}

func (e *CommitError) Unwrap() error { return e.Err }

// LeftoverError reports a patch that was applied, but whose old files could not all be removed.
type LeftoverError struct {
	Paths []string // files to remove
	Err   error    // why they could not be removed
}

func (e *LeftoverError) Error() string {
	return fmt.Sprintf("the patch is applied, but old content could not be removed: %v; remove %s", e.Err, strings.Join(e.Paths, ", "))
}

func (e *LeftoverError) Unwrap() error { return e.Err }
