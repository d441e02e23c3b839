package v4a

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

const (
	cameIntoBeing = "it has come into being"
	wasWritten    = "it was written"
)

// compare checks that the tree still has what the plan is made from, and that
// this process may replace it.
func (c *commit) compare(s *step) error {
	now, err := s.folder.Lstat(s.name)
	before := s.file.before
	switch {
	case errors.Is(err, fs.ErrNotExist) && before == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return s.changed("it is gone")
	case err != nil:
		return err
	case before == nil:
		return s.changed(cameIntoBeing)
	}
	if err := s.compareWith(s.name, now); err != nil {
		return err
	}
	return s.mayReplace(now)
}

// compareOld compares again what now goes by its second name.
func (s *step) compareOld() error {
	now, err := s.folder.Lstat(s.old)
	if err != nil {
		return err
	}
	return s.compareWith(s.old, now)
}

func (s *step) compareWith(name string, now fs.FileInfo) error {
	before := s.file.before
	switch {
	case before.Mode() != now.Mode() || before.Size() != now.Size():
		return s.changed("another size or mode")
	case !identified(before):
		return s.compareContent(name, now)
	case !sameState(before, now):
		return s.changed(wasWritten)
	}
	return nil
}

// sameState reports whether both are of one file that was not written between.
func sameState(before, now fs.FileInfo) bool {
	return os.SameFile(before, now) && before.Size() == now.Size() && before.ModTime().Equal(now.ModTime())
}

// compareContent serves file systems whose files have no identity and no time.
func (s *step) compareContent(name string, now fs.FileInfo) error {
	read := func() (string, error) { return read(s.folder, name, now.Size()) }
	if s.file.isLink() {
		read = func() (string, error) { return s.folder.Readlink(name) }
	}
	text, err := read()
	if err == nil && text != s.file.content.base {
		return s.changed(wasWritten)
	}
	return err
}

// mayReplace finds out what renaming would be refused for, before the file has
// a second name that could not be taken away again either.
func (s *step) mayReplace(now fs.FileInfo) error {
	dir, err := s.folder.Lstat(".")
	if err == nil && heldByOwner(dir, now, os.Geteuid()) {
		return fmt.Errorf("only its owner may replace it, as the directory is sticky: %w", fs.ErrPermission)
	}
	return nil
}

func (s *step) changed(reason string) error {
	return &ChangedError{Path: s.file.path, Reason: reason}
}
