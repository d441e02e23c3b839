package v4a

import (
	"fmt"
	"strings"
)

// ParseError is a patch that does not follow the format.
type ParseError struct {
	Line    int    // of the patch, from 1, "*** Begin Patch" being the first
	Problem string // what is wrong and what belongs there
}

func (e *ParseError) Error() string {
	return fmt.Sprintf("line %d of the patch: %s", e.Line, e.Problem)
}

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

// MatchError is a hunk whose lines are not in the file where they may be.
type MatchError struct {
	File      string   // as the patch spells it
	Hunk      int      // from 1
	PatchLine int      // of the first line that does not match where it should
	Want      []string // what was looked for: an "@@" line or the hunk's old lines
	Context   bool     // Want is an "@@" line
	Below     int      // the line of the file below which it was looked for; 0 is the whole file
	Nearest   *Nearest // the place most like it, or nil
	Hint      string   // what is probably wrong, or empty
}

// Nearest is the place in a file that comes closest to what a hunk expects.
type Nearest struct {
	Line int    // of the file, from 1
	Diff string // "-" what the patch expects, "+" what the file has there
}

func (e *MatchError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: hunk %d (line %d of the patch) ", e.File, e.Hunk, e.PatchLine)
	if e.Context {
		fmt.Fprintf(&b, "names a line that is not in the file%s: %q", e.below(), clip(e.Want[0]))
	} else {
		fmt.Fprintf(&b, "expects lines that are not in the file%s", e.below())
	}
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	if e.Nearest == nil {
		if !e.Context && e.Hint == "" {
			b.WriteString("; the file has nothing like them. Expected:\n" + excerpt(e.Want))
		}
		return b.String()
	}
	fmt.Fprintf(&b, "\nnearest place: line %d (- expected by the patch, + in the file)\n%s", e.Nearest.Line, e.Nearest.Diff)
	return strings.TrimSuffix(b.String(), "\n")
}

func (e *MatchError) below() string {
	if e.Below == 0 {
		return ""
	}
	return fmt.Sprintf(" below line %d, where the hunk or \"@@\" line before it is", e.Below)
}

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
