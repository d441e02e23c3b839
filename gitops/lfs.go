package gitops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/lfs"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
)

// LFSFile is the content of a Git LFS file.
type LFSFile struct {
	OID  string // SHA-256 in hex
	Size int64

	pointer lfs.Pointer
	store   lfs.Store
}

// Open opens the content, which has been hashed.
func (f LFSFile) Open(ctx context.Context) (*os.File, error) { return f.store.Open(ctx, f.pointer) }

// LFSFiles returns the contents, as far as they are here, of the Git LFS files that a change adds or
// modifies.
func (c *Checkout) LFSFiles(cs *ChangeSet) ([]LFSFile, error) {
	store := c.filters.LFS
	paths := c.work.LFSPaths(cs.Tree.hash())
	seen := map[string]bool{}
	var list []LFSFile
	for _, f := range cs.Files {
		mode := f.NewMode
		if f.NewID == "" || mode != fmt.Sprintf("%06o", index.Regular) && mode != fmt.Sprintf("%06o", index.Executable) || !paths(f.Path) {
			continue
		}
		text, err := c.objects.BlobBytes(plumbing.NewHash(f.NewID), lfs.LongestPointer)
		if errors.As(err, new(*objects.TooLargeError)) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look for Git LFS files: %w", err)
		}
		p, _, is := lfs.Parse(text)
		if !is || seen[p.OID] || !store.Has(p) {
			continue
		}
		seen[p.OID] = true
		list = append(list, LFSFile{OID: p.OID, Size: p.Size, pointer: p, store: store})
	}
	return list, nil
}

// adoptLFS copies the contents of Git LFS files of a change into the repository, where git-lfs looks
// for them.
func (c *Checkout) adoptLFS(ctx context.Context, cs *ChangeSet) error {
	files, err := c.LFSFiles(cs)
	if err != nil {
		return err
	}
	into := lfs.Store{Own: filepath.Join(c.repo.CommonDir, "lfs")}
	for _, f := range files {
		if into.Has(f.pointer) {
			continue
		}
		content, err := f.Open(ctx)
		if err != nil {
			return err
		}
		if err := errors.Join(into.Clean(ctx, content, true, io.Discard), content.Close()); err != nil {
			return fmt.Errorf("keep Git LFS files: %w", err)
		}
	}
	return nil
}
