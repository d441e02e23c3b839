package gitops

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/storer"

	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

// HasCommit says whether a commit with its tree is here. It does not look into
// folders of the tree.
func (c *Checkout) HasCommit(sha string) bool {
	id, err := parseID(sha)
	if err != nil {
		return false
	}
	commit, err := c.objects.commit(id)
	return err == nil && c.objects.has(commit.TreeHash)
}

// ShallowCommits are the commits whose parents this checkout doesn't have
// because it was cloned without them.
func (c *Checkout) ShallowCommits() []string {
	data, err := regularfile.Read(filepath.Join(c.commonDir, "shallow"), regularfile.Small)
	if err != nil {
		return nil
	}
	return strings.Fields(string(data))
}

// AddPack keeps the objects of a pack that was fetched, aside from the
// repository; shallow are the commits in it whose parents are not. The pack's
// objects are named by what is in them, whoever sent it.
func (c *Checkout) AddPack(ctx context.Context, pack io.Reader, shallow []string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var folder storer.PackfileWriter = c.objects.own
	w, err := folder.PackfileWriter()
	if err != nil {
		return fmt.Errorf("keep what was fetched: %w", err)
	}
	buffered := bufio.NewWriterSize(w, 64<<10)
	_, err = io.Copy(buffered, pack)
	if err = errors.Join(err, buffered.Flush(), w.Close()); err != nil {
		return fmt.Errorf("keep what was fetched: %w", err)
	}
	c.objects.own.Reindex()
	return appendShallow(c.shadow, shallow)
}

func appendShallow(gitDir string, shallow []string) error {
	if len(shallow) == 0 {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(gitDir, "shallow"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("keep what was fetched: %w", err)
	}
	_, err = io.WriteString(f, strings.Join(shallow, "\n")+"\n")
	return errors.Join(err, f.Close())
}

// lendFetched gives another git folder what was fetched: copies, which checks may
// write to.
func (c *Checkout) lendFetched(gitDir string) error {
	packs, err := filepath.Glob(filepath.Join(c.shadow, "objects", "pack", "pack-*"))
	if err != nil {
		return err
	}
	for _, from := range packs {
		to := filepath.Join(gitDir, "objects", "pack", filepath.Base(from))
		if err := regularfile.CopyIfThere(from, to, math.MaxInt64); err != nil {
			return err
		}
	}
	if len(packs) == 0 {
		return nil
	}
	return regularfile.CopyIfThere(filepath.Join(c.shadow, "shallow"), filepath.Join(gitDir, "shallow"), regularfile.Small)
}
