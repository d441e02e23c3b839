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

// Claim keeps other processes out that claim or share the work tree, until the
// Repository is closed or shares it again. It is an *InUseError when another process
// has done either; what was shared before is shared still then.
func (r *Repository) Claim() error {
	return r.alone(func() error {
		shared := r.lock != nil
		err := r.flock(syscall.LOCK_EX)
		if err != nil && shared {
			err = errors.Join(err, r.flock(syscall.LOCK_SH))
		}
		return err
	})
}

// ClaimSoon is Claim that waits a second for another process.
func (r *Repository) ClaimSoon(ctx context.Context) error { return r.soon(ctx, r.Claim) }

// inUseWait is how long a process is waited for that has claimed the work tree, or holds
// the index, as one does for a moment that switches it to another branch.
const inUseWait, inUseLook = time.Second, 10 * time.Millisecond

// Share lets other processes in that share the work tree and keeps those out that
// claim it, until the Repository is closed. What was claimed is shared from then on.
// It is an *InUseError when another process has claimed the work tree, and goes on for
// a second, or tries to while what was claimed would become shared: it is claimed still
// then.
func (r *Repository) Share(ctx context.Context) error {
	share := func() error { return r.flock(syscall.LOCK_SH) }
	if r.lock != nil {
		return r.alone(share)
	}
	return r.soon(ctx, share)
}

// soon does what is an *InUseError as long as another process is at work, for a second.
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

// alone changes a lock while nobody else can claim. A lock that becomes another one
// is given up first (flock(2)), and who claimed in between would keep it from coming
// back.
func (r *Repository) alone(change func() error) error {
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

// InUse says that others work in the work tree.
func (r *Repository) InUse() error {
	return &InUseError{r.Root, "another run works in it; wait until that has ended, or give each run a checkout of its own"}
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

// Idle is an *InUseError where a git is at work for more than a second, or died: it left a lock of the
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

// inUseByGit says that a lock is there.
func (r *Repository) inUseByGit(lock string) error {
	return &InUseError{r.Root, lock + " is there, so another git works in it, or one has died; remove the file then"}
}

// heldIndex is where the index is written while its lock is held, which has the holder's
// mark.
const heldIndex = "index.agent-ci"

// HoldIndex keeps every git from writing the index, until ReleaseIndex. The mark tells
// Held in a later process whose lock it is. While another git holds the index it
// waits for a second, and is an *InUseError then.
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

// linkLock makes the lock of the index with its mark in it, at once: a process that dies,
// or finds no room, leaves no lock of which nobody knows whose it is.
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

// StillHeld is an *InUseError where somebody removed the lock that is held, as one that a
// git left which died.
func (r *Repository) StillHeld() error {
	if r.holds == "" || r.Held(r.holds) {
		return nil
	}
	return &InUseError{r.Root, "somebody removed its index.lock while it was written to"}
}

// ReleaseIndex lets other gits write the index again.
func (r *Repository) ReleaseIndex() error {
	mark := r.holds
	r.holds = ""
	if mark == "" || !r.Held(mark) { // else somebody took the lock for one that was left
		return nil
	}
	return os.Remove(r.indexLock())
}

// Held says whether the lock of the index has a mark: a process that held it died.
func (r *Repository) Held(mark string) bool {
	data, err := regularfile.Read(r.indexLock(), int64(len(mark))+1)
	return err == nil && string(data) == mark
}

// replaceHeld replaces the index whose lock is held.
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
	return commitLock(f, r.indexPath(), write(f))
}

// replaceLocked replaces a file as git does: by way of path.lock, which keeps
// every other git out meanwhile. It stays where it is not as expected, once it is locked.
func replaceLocked(path string, data []byte, expected func() error) error {
	lock, err := lockFile(path)
	if err != nil {
		return err
	}
	if expected != nil {
		err = expected()
	}
	if err == nil {
		_, err = lock.Write(data)
	}
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
