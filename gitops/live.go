package gitops

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
)

// What of the repository proper is written, and only by SetBase, Switch and
// Restore: HEAD, the index, references and their logs.

// liveIndex is the checkout's index as it was last read, and the file that it
// was read from.
type liveIndex struct {
	file *index.File
	info fs.FileInfo
}

// readLiveIndex reads the index of the checkout, if it is not the same file as
// last time: on a large repository it is large.
func (c *Checkout) readLiveIndex(ctx context.Context) (*index.File, error) {
	path := filepath.Join(c.gitDir, "index")
	info, err := os.Stat(path)
	if err != nil {
		return c.readIndex(ctx, path)
	}
	if c.live.file != nil && os.SameFile(info, c.live.info) && index.StatOf(info) == index.StatOf(c.live.info) {
		return c.live.file, nil
	}
	f, err := c.readIndex(ctx, path)
	if err != nil {
		return nil, err
	}
	c.live = liveIndex{f, info}
	return f, nil
}

// writeLiveIndex replaces the index of the checkout by ix with updates.
func (c *Checkout) writeLiveIndex(ix *index.File, updates []index.Update) error {
	path := filepath.Join(c.gitDir, "index")
	lock, err := lockFile(path)
	if err != nil {
		return fmt.Errorf("write the index: %w", err)
	}
	if err := commitLock(lock, path, index.Write(lock, ix, updates)); err != nil {
		return fmt.Errorf("write the index: %w", err)
	}
	return nil
}

// headName is how git's messages call where HEAD is: the branch or the commit.
func (c *Checkout) headName() string {
	head, err := readHead(c.gitDir)
	if err != nil {
		return "HEAD"
	}
	return strings.TrimPrefix(head, "ref: refs/heads/")
}

// headCommit is what HEAD points to now; zero when that cannot be told.
func (c *Checkout) headCommit() plumbing.Hash {
	head, err := readHead(c.gitDir)
	if err != nil {
		return plumbing.ZeroHash
	}
	name, symbolic := strings.CutPrefix(head, "ref: ")
	if !symbolic {
		return plumbing.NewHash(head)
	}
	id, err := c.refs().read(name)
	if err != nil {
		return plumbing.ZeroHash
	}
	return id
}

// setHead writes HEAD ("ref: NAME" or an id), which points to commit then, and
// its log.
func (c *Checkout) setHead(head, commit, message string) error {
	old := c.headCommit()
	if err := replaceLocked(filepath.Join(c.gitDir, "HEAD"), []byte(head+"\n")); err != nil {
		return fmt.Errorf("write HEAD: %w", err)
	}
	return c.log(filepath.Join(c.gitDir, "logs", "HEAD"), old, plumbing.NewHash(commit), message)
}

// setBranch points a branch to commit and writes its log.
func (c *Checkout) setBranch(branch string, commit plumbing.Hash, message string) error {
	name := "refs/heads/" + branch
	old, err := c.refs().read(name)
	if err != nil && !errors.Is(err, errNoRef) {
		return err
	}
	if err := c.refs().write(name, commit); err != nil {
		return err
	}
	return c.log(filepath.Join(c.commonDir, "logs", filepath.FromSlash(name)), old, commit, message)
}

// logName and logMail stand in the logs of references for who moved them.
const (
	logName = "agent-ci"
	logMail = "agent-ci@noreply.invalid"
)

func (c *Checkout) log(path string, old, now plumbing.Hash, message string) error {
	if c.settings.noReflog {
		return nil
	}
	when := time.Now()
	who := fmt.Sprintf("%s <%s> %d %s", logName, logMail, when.Unix(), when.Format("-0700"))
	return reflog(path, old, now, who, message)
}
