package gitops

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// DropLocks removes the lock files that a git which died left in the course of
// the run: nothing of the run is alive any more when it is called. A lock that
// was there when the checkout was opened belongs to somebody else and stays.
func (c *Checkout) DropLocks() error {
	var failed error
	for _, path := range c.lockPaths() {
		if c.locked[path] {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

func (c *Checkout) lockPaths() []string {
	paths := []string{filepath.Join(c.repo.GitDir, "index.lock"), filepath.Join(c.repo.GitDir, "HEAD.lock")}
	if c.start.branch != "" {
		paths = append(paths, filepath.Join(c.repo.CommonDir, "refs", "heads", filepath.FromSlash(c.start.branch)+".lock"))
	}
	return paths
}

// noteLocks remembers the locks that are there before the run.
func (c *Checkout) noteLocks() {
	c.locked = map[string]bool{}
	for _, path := range c.lockPaths() {
		if _, err := os.Lstat(path); err == nil {
			c.locked[path] = true
		}
	}
}
