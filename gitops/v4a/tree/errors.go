package tree

import (
	"fmt"
	"strings"
)

// PathError is a path that a patch may not name, or a file that is not what
// the operation needs. Nothing has been written.
type PathError struct {
	Path    string // as the patch spells it
	Line    int    // of the section's header in the patch; 0 in a bare diff
	Problem string
	Err     error // the cause, where the file system gave one
}

func (e *PathError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.Path, e.Problem)
	}
	return fmt.Sprintf("%s (line %d of the patch): %s", e.Path, e.Line, e.Problem)
}

func (e *PathError) Unwrap() error { return e.Err }

// ChangedError is a file that is no longer what the plan was made from.
type ChangedError struct {
	Path   string
	Reason string
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s changed while the patch was being applied (%s): read it again and make a new patch", e.Path, e.Reason)
}

// CommitError is a write that failed. The tree is as it was before, except for
// the files in Unrestored and what is in Leftover beside them.
type CommitError struct {
	Path       string   // the file at which it failed
	Err        error    // why
	Unrestored []string // what could not be put back, with the place of the old content
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

// LeftoverError is a patch that was applied as a whole, but the old content of
// some files lies about under other names.
type LeftoverError struct {
	Paths []string // to be removed
	Err   error    // why that failed
}

func (e *LeftoverError) Error() string {
	return fmt.Sprintf("the patch is applied, but old content could not be removed: %v; remove %s", e.Err, strings.Join(e.Paths, ", "))
}

func (e *LeftoverError) Unwrap() error { return e.Err }
