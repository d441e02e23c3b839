package gitops

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// DefaultBranch is the branch that origin's HEAD was on when it was cloned
// (gitrevisions(7): refs/remotes/origin/HEAD); "" when that is not known.
func (c *Checkout) DefaultBranch() string {
	text, err := readSmall(filepath.Join(c.commonDir, "refs", "remotes", "origin", "HEAD"))
	if err != nil {
		return ""
	}
	branch, ok := strings.CutPrefix(strings.TrimSpace(text), "ref: refs/remotes/origin/")
	if !ok {
		return ""
	}
	return branch
}

// BranchesAt lists the local branches that point to a commit, sorted.
func (c *Checkout) BranchesAt(sha string) ([]string, error) {
	const prefix = "refs/heads/"
	var branches []string
	heads := filepath.Join(c.commonDir, "refs", "heads")
	err := filepath.WalkDir(heads, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, ".lock") {
			return err
		}
		branch, err := filepath.Rel(heads, path)
		if err != nil {
			return err
		}
		branch = filepath.ToSlash(branch)
		if id, err := c.refs().read(prefix + branch); err == nil && id.String() == sha {
			branches = append(branches, branch)
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the branches: %w", err)
	}
	err = c.refs().eachPacked(func(name, id string) error {
		branch, isBranch := strings.CutPrefix(name, prefix)
		if !isBranch || id != sha {
			return nil
		}
		// A file beside the packed references has the newer value.
		if now, err := c.refs().read(name); err == nil && now.String() == sha && !slices.Contains(branches, branch) {
			branches = append(branches, branch)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the branches: %w", err)
	}
	slices.Sort(branches)
	return branches, nil
}

// BranchFits says whether a branch may be called name here: "a" and "a/b"
// cannot both be.
func (c *Checkout) BranchFits(name string) error {
	if err := plumbing.NewBranchReferenceName(name).Validate(); err != nil {
		return fmt.Errorf("branch %q: %w", name, err)
	}
	heads := filepath.Join(c.commonDir, "refs", "heads")
	for at := name; ; {
		cut := strings.LastIndexByte(at, '/')
		if cut < 0 {
			break
		}
		at = at[:cut]
		if info, err := os.Lstat(filepath.Join(heads, filepath.FromSlash(at))); err == nil && !info.IsDir() {
			return fmt.Errorf("there is a branch %s, and %s cannot be beside it: delete it, or give another branch", at, name)
		}
	}
	return c.refs().fits("refs/heads/" + name)
}

// Settle makes an uncommitted change of what the agent left: HEAD, the branch
// that was checked out and the index are put back to the base, the files stay.
func (c *Checkout) Settle(ctx context.Context, snap *Snapshot) error {
	if err := c.putBranchBack(""); err != nil {
		return fmt.Errorf("put the checkout back on its base: %w", err)
	}
	head := c.start.head
	if c.base.SHA != c.start.commit.String() {
		head = c.base.SHA
	}
	if now, err := readHead(c.gitDir); err != nil || now != head {
		if err := c.setHead(head, c.base.SHA, "checkout: moving from "+c.headName()+" to "+c.base.SHA); err != nil {
			return fmt.Errorf("put the checkout back on its base: %w", err)
		}
	}
	live, err := c.readLiveIndex(ctx)
	if err == nil && live.Equal(snap.index) {
		return nil
	}
	if err := c.writeLiveIndex(snap.index, nil); err != nil {
		return fmt.Errorf("put the checkout back on its base: %w", err)
	}
	return nil
}

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
	paths := []string{filepath.Join(c.gitDir, "index.lock"), filepath.Join(c.gitDir, "HEAD.lock")}
	if c.start.branch != "" {
		paths = append(paths, filepath.Join(c.commonDir, "refs", "heads", filepath.FromSlash(c.start.branch)+".lock"))
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

// Holds says whether a repository on this machine has a commit. It reads files
// only and runs nothing that is configured there.
func Holds(path, sha string) (_ bool, err error) {
	_, store, err := openRepository(path)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	_, err = store.Commit(plumbing.NewHash(sha))
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return false, nil
	}
	return err == nil, err
}
