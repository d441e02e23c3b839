package sandbox

import (
	"cmp"
	"errors"
	"os"
	"syscall"
)

// OverlayError explains why a workspace cannot be overlaid here.
type OverlayError struct {
	Why string
	Err error // the kernel's error; nil if unknown
}

func (e *OverlayError) Error() string {
	return "the workspace can't be in an overlay: " + e.Why
}

func (e *OverlayError) Unwrap() error { return e.Err }

// PauseError explains why commands cannot be stopped.
type PauseError struct{ Why string }

func (e *PauseError) Error() string { return "commands can't be stopped for a moment: " + e.Why }

// Paused runs do while all commands are stopped. Start waits meanwhile, so do must not call it. Paused
// returns a PauseError if a command cannot be stopped: during a blocking system call, or without
// namespaces.
//
// With a cgroup, commands notice nothing (cgroup.freeze). Otherwise they receive SIGSTOP and SIGCONT: a
// handler of SIGCONT, or a shell that waits for a job, may notice. Neither stops writes by the kernel
// for a process, such as mapped pages or io_submit(2).
func (s *Sandbox) Paused(do func() error) (err error) {
	s.pausing.Lock()
	defer s.pausing.Unlock()
	s.mu.Lock()
	started := s.live != nil
	s.mu.Unlock()
	if !started {
		return do()
	}
	resume, err := s.stop()
	if err != nil {
		return &PauseError{err.Error()}
	}
	defer func() { err = errors.Join(err, resume()) }()
	return do()
}

// Tree returns a path of the commands' overlaid workspace, valid until Close. Folders opened through it
// stay valid. It returns "" without an overlay.
func (s *Sandbox) Tree() (string, error) {
	if err := s.ensureOpen(); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tree, nil
}

// trialFile is created during a trial.
const trialFile = ".agent-ci-trial"

// tryOverlay performs typical operations in an overlaid workspace. The caller discards the changes.
func tryOverlay(tree string) error {
	root, err := os.OpenRoot(tree)
	if err != nil {
		return &OverlayError{err.Error(), err}
	}
	defer root.Close()
	for _, operation := range []func() error{
		func() error { return root.WriteFile(trialFile, nil, 0o600) },
		func() error { return root.Rename(trialFile, trialFile+"-2") },
		func() error { return root.Remove(trialFile + "-2") },
		func() error { return tryExistingFiles(root) },
	} {
		if err := operation(); err != nil {
			return &OverlayError{err.Error(), err}
		}
	}
	return nil
}

// tryExistingFiles tries to change and remove an existing file. It skips files that may be read-only for
// other reasons, and returns their error only if there are no other files.
func tryExistingFiles(root *os.Root) (skipped error) {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	for _, name := range smallFiles(dir) {
		err := changeFile(root, name)
		if err == nil {
			err = root.Remove(name)
		}
		mayBeReadOnly := errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.EACCES)
		if !mayBeReadOnly {
			return err // nil if the file was changed and removed
		}
		skipped = cmp.Or(skipped, err)
	}
	return skipped
}

// smallFiles returns the names of a few small files directly in the workspace. It omits files covered
// by a mount, because they are not in the overlay.
func smallFiles(dir *os.File) (names []string) {
	const maxEntries, maxSize = 64, 1 << 20
	entries, _ := dir.ReadDir(maxEntries)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue
		}
		isSmallFile := info.Mode().IsRegular() && info.Size() < maxSize
		mayBeWritten := info.Mode().Perm()&0o200 != 0
		if isSmallFile && mayBeWritten && onMountOf(dir, e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// changeFile opens a file for writing, which copies it to the overlay.
func changeFile(root *os.Root, name string) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	return f.Close()
}
