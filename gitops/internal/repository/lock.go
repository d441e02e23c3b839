package repository

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

// Claim excludes other processes that claim or share the work tree, until the Repository is closed
// or shared. It returns an *InUseError if one has done so; an own earlier share persists then.
func (r *Repository) Claim() error {
	return r.exclusively(func() error {
		shared := r.lock != nil
		err := r.flock(syscall.LOCK_EX)
		if err != nil && shared {
			err = errors.Join(err, r.flock(syscall.LOCK_SH))
		}
		return err
	})
}

// ClaimSoon is Claim that waits up to a second.
func (r *Repository) ClaimSoon(ctx context.Context) error { return r.soon(ctx, r.Claim) }

// inUseWait bounds the wait for a process that has claimed the work tree or briefly holds the index
// for a switch.
const inUseWait, inUseLook = time.Second, 10 * time.Millisecond

// Share admits other processes that share the work tree and excludes claims, until the Repository
// is closed. It replaces an own claim. It returns an *InUseError if another process keeps its claim
// for a second, or tries to claim meanwhile; an own claim persists then.
func (r *Repository) Share(ctx context.Context) error {
	share := func() error { return r.flock(syscall.LOCK_SH) }
	if r.lock != nil {
		return r.exclusively(share)
	}
	return r.soon(ctx, share)
}

// soon retries do for a second while it returns an *InUseError.
func (r *Repository) soon(ctx context.Context, do func() error) error {
	ctx, cancel := context.WithTimeout(ctx, inUseWait)
	defer cancel()
	look := time.NewTicker(inUseLook)
	defer look.Stop()
	for {
		err := do()
		if _, used := errors.AsType[*InUseError](err); !used {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-look.C:
		}
	}
}

// exclusively changes a lock while nobody can claim. A converted lock is released first (flock(2)), and a
// claim in between would prevent its return.
func (r *Repository) exclusively(change func() error) error {
	gate, err := os.Open(r.Root)
	if err != nil {
		return fmt.Errorf("lock the checkout: %w", err)
	}
	defer gate.Close()
	if busy(syscall.Flock(int(gate.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)) {
		return r.InUse()
	}
	return change()
}

// flock locks the git folder in a way. Where the file system knows no such locks it
// does nothing.
func (r *Repository) flock(how int) error {
	f := r.lock
	if f == nil {
		var err error
		if f, err = os.Open(r.GitDir); err != nil {
			return fmt.Errorf("lock the checkout: %w", err)
		}
	}
	if busy(syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)) {
		if r.lock == nil {
			f.Close()
		}
		return r.InUse()
	}
	r.lock = f
	return nil
}

func busy(err error) bool { return errors.Is(err, syscall.EWOULDBLOCK) }

// InUse returns the error for a used work tree.
func (r *Repository) InUse() error {
	return &InUseError{r.Root, "another run works in it; wait until that has ended, or give each run a checkout of its own"}
}

// Unwritable returns a folder that a commit must write but may not.
func (r *Repository) Unwritable() (path string, err error) {
	const write = 2 // W_OK of access(2)
	for _, path := range [...]string{r.Root, r.GitDir, filepath.Join(r.CommonDir, "objects"), filepath.Join(r.CommonDir, "refs", "heads")} {
		if err := syscall.Access(path, write); errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EROFS) {
			return path, err
		}
	}
	return "", nil
}

// Idle returns an *InUseError if a git works for more than a second, or died and left a lock of
// index, HEAD, a reference or the configuration.
func (r *Repository) Idle(ctx context.Context) error {
	return r.soon(ctx, func() error {
		var locks []string
		if r.holds == "" {
			locks = append(locks, r.indexLock())
		}
		locks = append(locks, filepath.Join(r.GitDir, "HEAD.lock"), filepath.Join(r.CommonDir, "packed-refs.lock"), filepath.Join(r.CommonDir, "config.lock"))
		_ = filepath.WalkDir(filepath.Join(r.CommonDir, "refs"), func(path string, _ fs.DirEntry, _ error) error {
			if strings.HasSuffix(path, ".lock") {
				locks = append(locks, path)
			}
			return nil // what cannot be read is told by who needs it
		})
		for _, lock := range locks {
			if _, err := os.Lstat(lock); err == nil {
				return r.inUseByGit(lock)
			}
		}
		return nil
	})
}

// inUseByGit reports an existing lock.
func (r *Repository) inUseByGit(lock string) error {
	return &InUseError{r.Root, lock + " is there, so another git works in it, or one has died; remove the file then"}
}

// heldIndex is the name for writing the index while its lock, with the holder's mark, is held.
const heldIndex = "index.agent-ci"

// HoldIndex locks the index until ReleaseIndex. mark identifies the lock for Held in a later
// process. It waits a second for another git and then returns an *InUseError.
func (r *Repository) HoldIndex(ctx context.Context, mark string) error {
	err := r.soon(ctx, func() error {
		err := r.linkLock(mark)
		if errors.Is(err, fs.ErrExist) {
			return r.inUseByGit(r.indexLock())
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("lock the index: %w", err)
	}
	r.holds = mark
	return nil
}

// linkLock atomically makes the index's lock with its mark, so a killed process or full disk never
// leaves an anonymous lock.
func (r *Repository) linkLock(mark string) (err error) {
	f, err := os.CreateTemp(r.GitDir, heldIndex+".*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	if _, err := f.WriteString(mark); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	err = os.Link(f.Name(), r.indexLock())
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	return r.writeLock(mark) // the file system has no links
}

func (r *Repository) writeLock(mark string) error {
	f, err := os.OpenFile(r.indexLock(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(mark)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(r.indexLock()))
	}
	return nil
}

func (r *Repository) indexPath() string { return filepath.Join(r.GitDir, "index") }

func (r *Repository) indexLock() string { return r.indexPath() + ".lock" }

// Holds says whether HoldIndex was called, and ReleaseIndex not yet.
func (r *Repository) Holds() bool { return r.holds != "" }

// StillHeld returns an *InUseError if somebody removed our lock as stale.
func (r *Repository) StillHeld() error {
	if r.holds == "" || r.HasMark(r.holds) {
		return nil
	}
	return &InUseError{r.Root, "somebody removed its index.lock while it was written to"}
}

// ReleaseIndex lets other gits write the index again.
func (r *Repository) ReleaseIndex() error {
	mark := r.holds
	r.holds = ""
	if mark == "" || !r.HasMark(mark) { // else somebody took the lock for one that was left
		return nil
	}
	return os.Remove(r.indexLock())
}

// HasMark reports whether the index's lock has a mark: its process died.
func (r *Repository) HasMark(mark string) bool {
	data, err := regularfile.Read(r.indexLock(), int64(len(mark))+1)
	return err == nil && string(data) == mark
}

// replaceHeld replaces the locked index.
func (r *Repository) replaceHeld(write func(io.Writer) error) error {
	if err := r.StillHeld(); err != nil {
		return err
	}
	at := filepath.Join(r.GitDir, heldIndex)
	if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(at, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	return finishLock(f, r.indexPath(), write(f))
}

// replaceLocked replaces a file like git, through path.lock. It calls check while it holds the lock, and
// changes nothing if that fails. A nil check always passes.
func replaceLocked(path string, data []byte, check func() error) error {
	lock, err := lockFile(path)
	if err != nil {
		return err
	}
	if check != nil {
		err = check()
	}
	if err == nil {
		_, err = lock.Write(data)
	}
	return finishLock(lock, path, err)
}

// notLocked returns lockFile's error early.
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

// finishLock moves the lock file to path. If err is set or the move fails, it removes the lock file
// and returns the error.
func finishLock(lock *os.File, path string, err error) error {
	if err = errors.Join(err, lock.Close()); err == nil {
		err = os.Rename(lock.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(lock.Name()))
	}
	return nil
}
