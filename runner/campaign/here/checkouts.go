package here

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/remote"
	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/workspace"
)

// Checkouts makes the checkouts of targets from a mirror of each repository, which is fetched once. It
// may be used from several goroutines.
type Checkouts struct {
	Folder string // of the mirrors
	Git    string // the git program
	Remote func(repository string) remote.Remote
	Keep   bool // runs leave their work there
	Only   bool // no run may make its own checkout, which it would fetch from the forge

	mu      sync.Mutex
	mirrors map[string]*held // by their folders
}

// held is what is known of a mirror. Whoever works on it has it locked.
type held struct {
	mu      sync.Mutex
	commits map[string]bool
}

// make makes a checkout at the commit of a target. What was there before is of a run that had not begun.
// warn gets the error where contents of Git LFS files are missing: their files are pointers then.
func (c *Checkouts) make(ctx context.Context, t campaign.Target, dir string, warn func(error)) error {
	mirror := c.mirror(t.Repository)
	if err := c.hold(ctx, mirror, t.SHA); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := mirror.CheckOut(ctx, dir, t.Base, t.SHA); err != nil {
		return err
	}
	if err := c.fillLFS(ctx, mirror, dir); err != nil {
		warn(err)
	}
	return ctx.Err()
}

// fillLFS fetches the contents of Git LFS files into the mirror, and writes them into a checkout.
func (c *Checkouts) fillLFS(ctx context.Context, m remote.Mirror, dir string) (err error) {
	h := c.heldBy(m.Dir)
	h.mu.Lock()
	defer h.mu.Unlock()
	state, err := os.MkdirTemp(c.Folder, "state-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(state)) }()
	checkout, err := gitops.Open(ctx, gitops.Options{Dir: dir, Git: c.Git, State: state})
	if err != nil {
		return nil //nolint:nilerr // the run opens it, too, and says what is wrong
	}
	download := workspace.DownloadLFS(m.Remote)
	err = checkout.FillLFS(ctx, func(ctx context.Context, branch, _ string, list []gitops.LFSFile) error {
		return download(ctx, branch, filepath.Join(m.Dir, "lfs"), list)
	})
	return errors.Join(err, checkout.Close())
}

func (c *Checkouts) mirror(repository string) remote.Mirror {
	digest := sha256.Sum256([]byte(strings.ToLower(repository)))
	return remote.Mirror{Remote: c.Remote(repository), Dir: filepath.Join(c.Folder, hex.EncodeToString(digest[:8])+".git")}
}

// hold asks the mirror once for each commit: what it has, it keeps.
func (c *Checkouts) hold(ctx context.Context, m remote.Mirror, commit string) error {
	h := c.heldBy(m.Dir)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.commits[commit] {
		return nil
	}
	if err := m.Hold(ctx, commit); err != nil {
		return err
	}
	h.commits[commit] = true
	return nil
}

func (c *Checkouts) heldBy(dir string) *held {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mirrors == nil {
		c.mirrors = map[string]*held{}
	}
	if c.mirrors[dir] == nil {
		c.mirrors[dir] = &held{commits: map[string]bool{}}
	}
	return c.mirrors[dir]
}

// free takes a checkout away.
func (c *Checkouts) free(dir string) {
	if c != nil && !c.Keep {
		_ = os.RemoveAll(dir)
	}
}

// Clear takes the mirrors away, once no target needs them.
func (c *Checkouts) Clear() error {
	if c == nil || c.Keep {
		return nil
	}
	return os.RemoveAll(c.Folder)
}
