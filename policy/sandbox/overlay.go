package sandbox

import (
	"cmp"
	"errors"
	"os"
	"syscall"
)

// OverlayError says that a workspace can't be in an overlay here, and why.
type OverlayError struct {
	Why string
	Err error // what the kernel said; nil where that is not known
}

func (e *OverlayError) Error() string {
	return "the workspace can't be in an overlay: " + e.Why
}

func (e *OverlayError) Unwrap() error { return e.Err }

// PauseError says that commands can't be stopped, and why.
type PauseError struct{ Why string }

func (e *PauseError) Error() string { return "commands can't be stopped for a moment: " + e.Why }

// Paused does something while all that was started stands still. What is to start
// meanwhile waits, so do must not wait for that. The error is a PauseError where not all
// can be stopped: what is in a call of the kernel that does not end, and what runs
// outside of namespaces.
//
// In a cgroup of their own the commands don't notice (cgroup.freeze). Else they are sent
// SIGSTOP and then SIGCONT: who handles the one learns of it, and a shell that waits
// for a job may tell that it stopped. What the kernel writes for a process, such as
// pages of a mapped file or a request of io_submit(2), is not stopped by either.
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

// Tree is where this process finds a workspace in an overlay as commands see it: a
// path to open folders by, good until Close. What was opened by it stays good. It is
// empty where there is no overlay.
func (s *Sandbox) Tree() (string, error) {
	if s.opened != nil {
		if err := s.opened(); err != nil {
			return "", err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tree, nil
}

// trialFile is what a trial makes.
const trialFile = ".agent-ci-trial"

// tryOverlay does in a workspace in an overlay what commands and tools do there. The
// changes are to be thrown away afterwards.
func tryOverlay(tree string) error {
	root, err := os.OpenRoot(tree)
	if err != nil {
		return &OverlayError{err.Error(), err}
	}
	defer root.Close()
	tries := []func() error{
		func() error { return root.WriteFile(trialFile, nil, 0o600) },
		func() error { return root.Rename(trialFile, trialFile+"-2") },
		func() error { return root.Remove(trialFile + "-2") },
	}
	for _, try := range append(tries, func() error { return tryFiles(root) }) {
		if err := try(); err != nil {
			return &OverlayError{err.Error(), err}
		}
	}
	return nil
}

// tryFiles changes and removes a file that was there before. One that is not for commands
// to change says nothing of the overlay, unless there is no other.
func tryFiles(root *os.Root) (refused error) {
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
		if !errors.Is(err, syscall.EROFS) && !errors.Is(err, syscall.EBUSY) && !errors.Is(err, syscall.EACCES) {
			return err
		}
		refused = cmp.Or(refused, err)
	}
	return refused
}

// smallFiles are a few small files right in the workspace. What is mounted over a file is
// no part of the overlay.
func smallFiles(dir *os.File) (names []string) {
	const looked, small = 64, 1 << 20
	entries, _ := dir.ReadDir(looked)
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() && info.Size() < small && info.Mode().Perm()&0o200 != 0 && onMountOf(dir, e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// changeFile opens a file for writing, by which the overlay gets it.
func changeFile(root *os.Root, name string) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	return f.Close()
}
