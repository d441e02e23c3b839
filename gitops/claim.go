package gitops

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// InUseError says that somebody else works in the checkout at this moment.
type InUseError struct {
	Root   string
	Remedy string
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("the checkout %s is in use: %s", e.Root, e.Remedy)
}

// Claim makes this process the only one that works in the work tree, until the
// Checkout is closed: each of two would take the other's files for changes of
// its own. It is an *InUseError when another process has claimed it. Where the
// file system knows no such locks nothing is claimed.
func (c *Checkout) Claim() error {
	f, err := os.Open(c.gitDir)
	if err != nil {
		return fmt.Errorf("claim the checkout: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		c.claim = f
		return nil
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return &InUseError{c.root, "another run works in it; wait until that has ended, or give each run a checkout of its own"}
	}
	return nil
}

// Unwritable is a folder of the checkout that would have to be written for a
// commit and may not be, and why. Its error is nil when there is none.
func (c *Checkout) Unwritable() (path string, err error) {
	const write = 2 // W_OK of access(2)
	for _, path := range [...]string{c.root, c.gitDir, filepath.Join(c.commonDir, "objects"), filepath.Join(c.commonDir, "refs", "heads")} {
		if err := syscall.Access(path, write); errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EROFS) {
			return path, err
		}
	}
	return "", nil
}

// Idle makes sure that no git is at work in the checkout. It is an *InUseError
// when one is, or died there: it would be found only when the work is done.
func (c *Checkout) Idle() error {
	if path := filepath.Join(c.gitDir, "index"); notLocked(path) != nil {
		return &InUseError{c.root, fmt.Sprintf("%s.lock is there, so another git works in it, or one has died; remove the file then", path)}
	}
	return nil
}
