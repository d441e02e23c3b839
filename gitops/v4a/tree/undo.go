package tree

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// undo reverts one step of a commit.
type undo struct {
	folder *folder // where it happens
	path   string
	old    string // where the old content is stored, or ""
	litter bool   // a failed undo leaves only a temporary file or a new directory
	do     func() error
}

// litterError reports an undo that restored all content, but could not remove a second name.
type litterError struct{ error }

// rollBack undoes all steps, the last one first. It adds the undos that failed to the error.
func (c *commit) rollBack(cause error) error {
	failed := &CommitError{Err: cause}
	if already, ok := errors.AsType[*CommitError](cause); ok {
		failed = already
	}
	stuck := ""
	for _, u := range slices.Backward(c.undo) {
		if err := c.withOpenFolder(u.folder, u.do); err != nil {
			stuck = u.path
			failed.add(u, err)
		}
	}
	if stuck == "" {
		return cause
	}
	failed.Path = cmp.Or(failed.Path, stuck)
	return failed
}

// add records a failed undo in Leftover or Unrestored.
func (e *CommitError) add(u undo, err error) {
	_, isLitter := errors.AsType[litterError](err)
	switch {
	case isLitter:
		e.Leftover = append(e.Leftover, fmt.Sprintf("%s (%v)", u.old, err))
	case u.litter:
		e.Leftover = append(e.Leftover, fmt.Sprintf("%s (%v)", u.path, err))
	case u.old == "":
		e.Unrestored = append(e.Unrestored, fmt.Sprintf("%s (%v)", u.path, err))
	default:
		e.Unrestored = append(e.Unrestored, fmt.Sprintf("%s (its old content is in %s: %v)", u.path, u.old, err))
	}
}

// discardFresh removes an unused temporary file.
func (s *step) discardFresh() error {
	if s.fresh == "" {
		return nil
	}
	return s.folder.Remove(s.fresh)
}

// removeNew removes a new file, unless another program has replaced it.
func (s *step) removeNew() error {
	now, err := s.folder.Lstat(s.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && s.isForeign(now) {
		return nil
	}
	return s.folder.Remove(s.name)
}

// isForeign reports whether a file is not the one that this commit wrote.
func (s *step) isForeign(now fs.FileInfo) bool {
	return s.made == nil || !sameState(s.made, now)
}

// restoreOld renames the old file back to its name. If the old file still has its name, restoreOld only
// removes the second name. It fails if another program has put a file at the path.
func (s *step) restoreOld() error {
	now, err := s.folder.Lstat(s.name)
	switch {
	case errors.Is(err, fs.ErrNotExist): // the name is free
	case err != nil:
		return err
	case s.isOld(now):
		return s.dropSecondName()
	case s.isForeign(now):
		return errors.New("another program has put a file in its place")
	}
	if err := s.folder.Rename(s.old, s.name); err != nil {
		return err
	}
	s.old = ""
	return nil
}

// isOld reports whether a file is the one with the second name.
func (s *step) isOld(now fs.FileInfo) bool {
	old, err := s.folder.Lstat(s.old)
	return err == nil && os.SameFile(now, old)
}

// dropSecondName removes the second name of the old file.
func (s *step) dropSecondName() error {
	if err := s.folder.Remove(s.old); err != nil {
		return litterError{err}
	}
	s.old = ""
	return nil
}
