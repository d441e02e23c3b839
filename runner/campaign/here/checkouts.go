package here

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/gitops/remote"
	"github.com/agent-ci/agent-ci/runner/campaign"
)

// Checkouts makes the checkouts of targets from a mirror of each repository, which is fetched once. It
// may be used from several goroutines.
type Checkouts struct {
	Folder string // of the mirrors
	Git    string // the git program
	Remote func(repository string) remote.Remote
	Keep   bool // runs leave their work there

	mu    sync.Mutex
	locks map[string]*sync.Mutex // by mirror
}

// make makes a checkout at the commit of a target. What was there before is of a run that had not begun.
func (c *Checkouts) make(ctx context.Context, t campaign.Target, dir string) error {
	mirror := c.mirror(t.Repository)
	if err := c.hold(ctx, mirror, t.SHA); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return mirror.CheckOut(ctx, dir, t.Base, t.SHA)
}

func (c *Checkouts) mirror(repository string) remote.Mirror {
	digest := sha256.Sum256([]byte(strings.ToLower(repository)))
	return remote.Mirror{Remote: c.Remote(repository), Dir: filepath.Join(c.Folder, hex.EncodeToString(digest[:8])+".git"), Git: c.Git}
}

func (c *Checkouts) hold(ctx context.Context, m remote.Mirror, commit string) error {
	lock := c.lockOf(m.Dir)
	lock.Lock()
	defer lock.Unlock()
	return m.Hold(ctx, commit)
}

func (c *Checkouts) lockOf(dir string) *sync.Mutex {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.locks == nil {
		c.locks = map[string]*sync.Mutex{}
	}
	if c.locks[dir] == nil {
		c.locks[dir] = &sync.Mutex{}
	}
	return c.locks[dir]
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
