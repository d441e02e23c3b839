package repository

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
	"github.com/agent-ci/agent-ci/policy/store"
)

// Claim excludes all other processes from the work tree, until Close or Share. It returns an
// *InUseError if another process has claimed or shared it. An earlier Share of this process stays
// in force then.
func (r *Repository) Claim() error {
	return r.withRootLocked(func() error {
		shared := r.claimFile != nil
		err := r.flock(syscall.LOCK_EX)
		if err != nil && shared {
			err = errors.Join(err, r.flock(syscall.LOCK_SH))
		}
		return err
	})
}

// ClaimWithRetry is Claim that waits up to a second for other processes.
func (r *Repository) ClaimWithRetry(ctx context.Context) error {
	return r.retryWhileInUse(ctx, r.Claim)
}

// inUseWait is the longest wait for a process that uses the work tree, or that briefly locks the
// index.
const inUseWait = time.Second

// Share lets other processes share the work tree, and excludes claims, until Close. It replaces a
// claim of this process. It returns an *InUseError if another process holds a claim for a second,
// or tries to claim meanwhile; this process's claim stays in force then.
func (r *Repository) Share(ctx context.Context) error {
	share := func() error { return r.flock(syscall.LOCK_SH) }
	if r.claimFile != nil {
		return r.withRootLocked(share)
	}
	return r.retryWhileInUse(ctx, share)
}

// retryWhileInUse calls do again, for up to a second, as long as it returns an *InUseError.
func (r *Repository) retryWhileInUse(ctx context.Context, do func() error) error {
	ctx, cancel := context.WithTimeout(ctx, inUseWait)
	defer cancel()
	return store.Await(ctx, func() (bool, error) {
		err := do()
		_, used := errors.AsType[*InUseError](err)
		return used, err
	})
}

// withRootLocked runs change while no other process can change its lock the same way. Converting a
// flock(2) first releases it. Another process could claim in that moment, and the old lock could
// not be restored.
func (r *Repository) withRootLocked(change func() error) error {
	gate, err := os.Open(r.Root)
	if err != nil {
		return fmt.Errorf("lock the checkout: %w", err)
	}
	defer gate.Close()
	if held, _ := store.Lock(gate); held {
		return r.inUseError()
	}
	return change()
}

// flock locks the git folder without waiting. how is LOCK_EX or LOCK_SH. On a file system without
// such locks it does nothing.
func (r *Repository) flock(how int) error {
	f := r.claimFile
	if f == nil {
		var err error
		if f, err = os.Open(r.GitDir); err != nil {
			return fmt.Errorf("lock the checkout: %w", err)
		}
	}
	if errors.Is(syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB), syscall.EWOULDBLOCK) {
		if r.claimFile == nil {
			f.Close()
		}
		return r.inUseError()
	}
	r.claimFile = f
	return nil
}

// WasRemoved reports whether somebody deleted or moved the work tree or its git folder, or put another git
// folder there since Claim or Share.
func (r *Repository) WasRemoved() bool {
	if !isDir(r.Root) || !isDir(r.CommonDir) {
		return true
	}
	if _, err := os.Lstat(filepath.Join(r.GitDir, "HEAD")); errors.Is(err, fs.ErrNotExist) {
		return true // git no longer takes it for a git folder
	}
	now, err := os.Stat(r.GitDir)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil || r.claimFile == nil {
		return false
	}
	claimed, err := r.claimFile.Stat()
	isOther := err == nil && !os.SameFile(claimed, now)
	return isOther
}

// inUseError returns the error for a work tree that another run uses.
func (r *Repository) inUseError() error {
	return &InUseError{r.Root, "another run works in it; wait until that has ended, or give each run a checkout of its own"}
}

// Unwritable returns a file or folder that any change must write to but cannot, with the reason as an error.
// It returns a nil error if there is none. movesHead means that HEAD moves with the change, to a commit.
func (r *Repository) Unwritable(movesHead bool) (path string, err error) {
	folders, files := []string{r.Root, r.GitDir}, []string(nil)
	if movesHead {
		folders = append(folders, filepath.Join(r.CommonDir, "objects"), filepath.Join(r.CommonDir, "refs", "heads"))
		files = []string{filepath.Join(r.GitDir, "HEAD"), r.indexPath()}
	}
	for _, path := range folders {
		if err := unwritableFolder(path); err != nil {
			return path, err
		}
	}
	for _, path := range files {
		if err := requireReplaceable(path); err != nil {
			return path, err
		}
	}
	return "", nil
}

// UnwritableAmong returns the first file or folder that cannot be written, so that one of these paths of the work tree
// cannot be made, replaced or deleted. The error is the reason. If there is none, it returns "".
func (r *Repository) UnwritableAmong(paths []string) (unwritable string, err error) {
	root, err := os.OpenRoot(r.Root)
	if err != nil {
		return "", nil //nolint:nilerr // what needs the work tree reports it
	}
	defer root.Close()
	seen := make(map[string]bool)
	for _, name := range paths {
		if above := regularfile.Obstacle(root, path.Dir(name)); above != "" {
			name = above // a folder is to replace it; where a link leads does not matter
		}
		file := filepath.Join(r.Root, filepath.FromSlash(name))
		if err := requireReplaceable(file); err != nil {
			return file, err
		}
		folder := filepath.Dir(file)
		for folder != r.Root && !seen[folder] && !isDir(folder) { // it is to be made, too
			folder = filepath.Dir(folder)
		}
		if seen[folder] {
			continue
		}
		seen[folder] = true
		if err := unwritableFolder(folder); err != nil {
			return folder, err
		}
	}
	return "", nil
}

// unwritableFolder returns the error of making or deleting a file in a folder: missing permission, a read-only file
// system, or a folder that is immutable.
func unwritableFolder(path string) error {
	if err := requireWritable(path); errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EPERM) {
		return err
	}
	return nil
}

// requireReplaceable returns an error if a file is immutable or a read-only mount: nothing can replace or delete it.
// Permissions of the file do not matter. Links are ignored, because they may lead out of the checkout.
func requireReplaceable(path string) error {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	if err := requireWritable(path); errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EPERM) {
		return err
	}
	return nil
}

// requireWritable returns the error of access(2) for writing.
func requireWritable(path string) error {
	const write = 2 // W_OK
	err := syscall.Access(path, write)
	if errors.Is(err, syscall.EPERM) {
		return fmt.Errorf("immutable: %w", err)
	}
	return err
}

// RequireIdle returns an *InUseError if a git process works for more than a second, or has died and left a
// lock. It looks at the locks of the index, HEAD, references and the configuration. It removes
// locks of a killed agent-ci, except the lock of the index.
func (r *Repository) RequireIdle(ctx context.Context) error {
	return r.retryWhileInUse(ctx, func() error {
		for _, path := range r.lockedPaths() {
			isHeldByUs := path == r.indexPath() && r.indexLock != nil
			if isHeldByUs || r.dropDeadLock(path) {
				continue
			}
			return r.gitLockError(path)
		}
		return nil
	})
}

// DropOwnLocks removes the locks with the mark of this Repository if their process died. It keeps those of a
// living process. The lock of the index goes last, since it kept every git from taking the others.
func (r *Repository) DropOwnLocks() error {
	for _, path := range slices.Backward(r.lockedPaths()) {
		_, err := dropMarked(path, func(text string) bool { return text == r.LockMark }, func(held bool, _ error) bool { return held })
		if err != nil {
			return err
		}
	}
	return nil
}

// lockedPaths lists the files that are locked, the index first.
func (r *Repository) lockedPaths() (paths []string) {
	fixed := []string{r.indexPath(), filepath.Join(r.GitDir, "HEAD"), filepath.Join(r.CommonDir, "packed-refs"), filepath.Join(r.CommonDir, "config")}
	for _, path := range fixed {
		if isLocked(path) {
			paths = append(paths, path)
		}
	}
	_ = filepath.WalkDir(filepath.Join(r.CommonDir, "refs"), func(path string, _ fs.DirEntry, _ error) error {
		if path, is := strings.CutSuffix(path, ".lock"); is && !strings.HasSuffix(path, newContentSuffix) {
			paths = append(paths, path)
		}
		return nil // ignore an unreadable folder; the code that needs it reports it
	})
	return paths
}

// gitLockError returns the error for an existing lock.
func (r *Repository) gitLockError(path string) error {
	return &InUseError{r.Root, path + ".lock is there, so another git works in it, or one has died; remove the file then"}
}

// DefaultMark is the content of locks if no other mark is set. Every mark contains the text marked.
const (
	DefaultMark = markText + "\n"
	markText    = "agent-ci writes to this checkout."
)

// newContentSuffix names the next content of a locked file, path~agent-ci.lock. git skips such names beside references,
// and no reference can have the lock, since git forbids "~" in names.
const newContentSuffix = "~agent-ci"

// heldLock is a lock of this process: a file path.lock, as in git. It contains the mark. The
// process also holds a flock(2) on the file until it releases the lock or dies.
type heldLock struct {
	path string
	mark string // the lock's content
	file *os.File
}

// lock locks a file like git. It replaces a lock that a dead agent-ci left. It returns an *InUseError
// if another process holds the lock.
func (r *Repository) lock(path string) (*heldLock, error) {
	f, err := r.linkLock(path)
	if errors.Is(err, fs.ErrExist) && r.dropDeadLock(path) {
		f, err = r.linkLock(path)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil, r.gitLockError(path)
	}
	if err != nil {
		return nil, err
	}
	return &heldLock{path, r.LockMark, f}, nil
}

// linkLock creates a lock together with its mark in one step. So a killed process or a full disk
// cannot leave a lock without a mark.
func (r *Repository) linkLock(path string) (*os.File, error) {
	f, err := os.CreateTemp(r.GitDir, "agent-ci.lock.*")
	if err != nil {
		return nil, err
	}
	err = r.writeMark(f)
	if err == nil {
		err = os.Link(f.Name(), path+".lock")
	}
	_ = os.Remove(f.Name()) // a file that stays does no harm
	if err == nil {
		return f, nil
	}
	err = errors.Join(err, f.Close())
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return r.createLock(path) // the file system has no links
}

// createLock makes a lock without a link. A process killed meanwhile leaves a lock without a mark.
func (r *Repository) createLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if err := r.writeMark(f); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return f, nil
}

// writeMark takes a flock(2) on a new lock file, then writes the mark. On a file system without
// flock, only the mark shows whose lock it is.
func (r *Repository) writeMark(f *os.File) error {
	_, _ = store.Lock(f)
	_, err := f.WriteString(r.LockMark)
	return err
}

// isMark reports whether a lock's text is the whole mark of an agent-ci.
func isMark(text string) bool {
	line, rest, hasEnd := strings.Cut(text, "\n")
	isOneLine := hasEnd && rest == ""
	run, _, hasMark := strings.Cut(line, markText)
	namesRun := strings.HasPrefix(run, "Run ") && strings.HasSuffix(run, " of ")
	return isOneLine && hasMark && (run == "" || namesRun)
}

// dropDeadLock removes a lock of an agent-ci that died, and reports whether it is gone. The lock of the
// index stays, since only resuming that run completes or reverts what it guards. So do locks on file systems
// that cannot tell whether their process lives.
func (r *Repository) dropDeadLock(path string) bool {
	if path == r.indexPath() {
		return false
	}
	gone, err := dropMarked(path, isMark, func(_ bool, err error) bool { return err != nil })
	return gone && err == nil
}

// dropMarked removes a lock with a mark, and reports whether it is gone. It keeps the lock if it cannot read it, if
// isOwnMark rejects the mark, or if isAlive reports true for the result of store.Lock on it.
func dropMarked(path string, isOwnMark func(text string) bool, isAlive func(held bool, err error) bool) (gone bool, err error) {
	f, err := regularfile.Open(path + ".lock")
	if err != nil {
		return errors.Is(err, fs.ErrNotExist), nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 1<<10))
	if err != nil || !isOwnMark(string(text)) {
		return false, nil
	}
	if isAlive(store.Lock(f)) {
		return false, nil
	}
	if !isLockFile(f, path) { // its process has released it since it was opened
		return !isLocked(path), nil
	}
	return true, dropLock(path)
}

// isLockFile reports whether an open file is the lock of a path.
func isLockFile(f *os.File, path string) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	now, err := os.Lstat(path + ".lock")
	return err == nil && os.SameFile(opened, now)
}

// dropLock removes a lock and the unfinished new content of its file.
func dropLock(path string) error {
	for _, name := range [...]string{path + newContentSuffix + ".lock", path + ".lock"} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// isIntact reports whether nobody replaced or removed the lock.
func (l *heldLock) isIntact() bool {
	text, err := regularfile.Read(l.path+".lock", int64(len(l.mark))+1)
	return err == nil && string(text) == l.mark && isLockFile(l.file, l.path)
}

// release removes the lock, unless somebody else did so and may have made another.
func (l *heldLock) release() error {
	var err error
	if l.isIntact() {
		err = dropLock(l.path)
	}
	return errors.Join(err, l.file.Close())
}

// replace replaces the locked file by what write writes.
func (l *heldLock) replace(write func(io.Writer) error) error {
	name := l.path + newContentSuffix + ".lock"
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	if err = errors.Join(write(f), f.Close()); err == nil {
		err = os.Rename(name, l.path)
	}
	return err
}

// HoldIndex locks the index until ReleaseIndex. It waits up to a second for another git, then
// returns an *InUseError.
func (r *Repository) HoldIndex(ctx context.Context) error {
	err := r.retryWhileInUse(ctx, func() (err error) {
		r.indexLock, err = r.lock(r.indexPath())
		return err
	})
	if err != nil {
		return fmt.Errorf("lock the index: %w", err)
	}
	return nil
}

func (r *Repository) indexPath() string { return filepath.Join(r.GitDir, "index") }

// HoldsIndex reports whether this process holds the lock of the index.
func (r *Repository) HoldsIndex() bool { return r.indexLock != nil }

// requireIndexLock returns an *InUseError if somebody removed this process's lock of the index as stale.
func (r *Repository) requireIndexLock() error {
	if r.indexLock == nil || r.indexLock.isIntact() {
		return nil
	}
	return &InUseError{r.Root, "somebody removed its index.lock while it was written to"}
}

// ReleaseIndex unlocks the index for other git processes.
func (r *Repository) ReleaseIndex() error {
	held := r.indexLock
	r.indexLock = nil
	if held == nil {
		return nil
	}
	return held.release()
}

// replaceUnderLock replaces a file like git, with path.lock. It calls check while it holds the lock,
// and changes nothing if check fails. It returns an *InUseError if the file is locked.
func (r *Repository) replaceUnderLock(path string, check func() error, write func(io.Writer) error) (err error) {
	l, err := r.lock(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.release()) }()
	if err := check(); err != nil {
		return err
	}
	return l.replace(write)
}

func isLocked(path string) bool {
	_, err := os.Lstat(path + ".lock")
	return err == nil
}
