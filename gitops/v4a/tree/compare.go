package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

const (
	appearedReason = "it has come into being"
	vanishedReason = "it is gone"
)

// requireUnchanged checks that a file did not change since the plan, and that this process may replace it.
func (c *commit) requireUnchanged(s *step) error {
	now, err := s.folder.Lstat(s.name)
	before, isMissing := s.file.before, errors.Is(err, fs.ErrNotExist)
	switch {
	case isMissing && before == nil:
		return nil
	case isMissing:
		return s.changedError(vanishedReason)
	case err != nil:
		return err
	case before == nil:
		return s.changedError(appearedReason)
	}
	if err := s.compareWith(now); err != nil {
		return err
	}
	return s.requireReplaceable(now)
}

// compareOld checks again, under its second name, that the old file did not change.
func (s *step) compareOld() error {
	now, err := s.folder.Lstat(s.old)
	if err != nil {
		return err
	}
	return s.compareWith(now)
}

// compareWith returns a *ChangedError if now differs from the state at the plan.
func (s *step) compareWith(now fs.FileInfo) error {
	before := s.file.before
	switch {
	case before.Mode() != now.Mode() || before.Size() != now.Size():
		return s.changedError("another size or mode")
	case !sameState(before, now):
		return s.changedError("it was written")
	}
	return nil
}

// sameState reports whether two states belong to the same, unmodified file.
func sameState(before, now fs.FileInfo) bool {
	return os.SameFile(before, now) && before.Size() == now.Size() && before.ModTime().Equal(now.ModTime())
}

// requireReplaceable returns an error if the system would forbid the rename. It is called before the file
// gets a second name, because that name could not be removed either.
func (s *step) requireReplaceable(now fs.FileInfo) error {
	dir, err := s.folder.Lstat(".")
	if err != nil {
		return nil // the rename decides
	}
	if heldByOwner(dir, now, os.Geteuid()) {
		return fmt.Errorf("only its owner may replace it, as the directory is sticky: %w", fs.ErrPermission)
	}
	return nil
}

func (s *step) changedError(reason string) error {
	return &ChangedError{Path: s.file.path, Reason: reason}
}
