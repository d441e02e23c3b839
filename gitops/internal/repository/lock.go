package repository

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Claim keeps other processes that claim the work tree out until the Repository is
// closed; it is an *InUseError when one has claimed it.
func (r *Repository) Claim() error {
	f, err := os.Open(r.GitDir)
	if err != nil {
		return fmt.Errorf("claim the checkout: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		r.claimed = f
		return nil
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return &InUseError{r.Root, "another run works in it; wait until that has ended, or give each run a checkout of its own"}
	}
	return nil
}

// Unwritable is a folder that would have to be written for a commit and may not be.
func (r *Repository) Unwritable() (path string, err error) {
	const write = 2 // W_OK of access(2)
	for _, path := range [...]string{r.Root, r.GitDir, filepath.Join(r.CommonDir, "objects"), filepath.Join(r.CommonDir, "refs", "heads")} {
		if err := syscall.Access(path, write); errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EROFS) {
			return path, err
		}
	}
	return "", nil
}

// Idle is an *InUseError where a git is at work, or died.
func (r *Repository) Idle() error {
	if path := filepath.Join(r.GitDir, "index"); notLocked(path) != nil {
		return &InUseError{r.Root, fmt.Sprintf("%s.lock is there, so another git works in it, or one has died; remove the file then", path)}
	}
	return nil
}

// replaceLocked replaces a file as git does: by way of path.lock, which keeps
// every other git out meanwhile.
func replaceLocked(path string, data []byte) error {
	lock, err := lockFile(path)
	if err != nil {
		return err
	}
	_, err = lock.Write(data)
	return commitLock(lock, path, err)
}

// notLocked says early what lockFile would say.
func notLocked(path string) error {
	if _, err := os.Lstat(path + ".lock"); err == nil {
		return errLocked(path)
	}
	return nil
}

func errLocked(path string) error {
	return fmt.Errorf("%s.lock is there: another git works in this repository, or one has died; remove the file then", path)
}

func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return nil, errLocked(path)
	}
	return f, err
}

func commitLock(lock *os.File, path string, err error) error {
	if err = errors.Join(err, lock.Close()); err == nil {
		err = os.Rename(lock.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(lock.Name()))
	}
	return nil
}
