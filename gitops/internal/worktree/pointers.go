package worktree

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/lfs"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

// PointerFile is the pointer of a Git LFS file.
type PointerFile struct {
	File    objects.Difference // the same file as old and new side
	Pointer lfs.Pointer
	Here    bool // the file in the work tree is this pointer, without the content
}

// PointerFiles returns the Git LFS files of a tree whose contents git-lfs would download at
// checkout. If the tree is checked out, it omits files that are no pointers any more in the work
// tree.
func (w *Worktree) PointerFiles(ctx context.Context, tree plumbing.Hash, checkedOut bool) ([]PointerFile, error) {
	hasFilter := false
	for _, driver := range w.repo.Settings.Filters {
		hasFilter = hasFilter || driver.FetchesLFS()
	}
	if !hasFilter {
		return nil, nil
	}
	all, err := w.objects.Differences(ctx, plumbing.ZeroHash, tree)
	if err != nil {
		return nil, err
	}
	filters, err := w.FiltersByPath(ctx, tree, pathsOf(all))
	if err != nil {
		return nil, err
	}
	var list []PointerFile
	for _, d := range all {
		isFile := d.New.Mode == index.Regular || d.New.Mode == index.Executable
		if name := filters[d.Path]; !isFile || name == "" || !w.repo.Settings.Filters[name].FetchesLFS() {
			continue
		}
		p, plain, pointer, err := PointerIn(w.objects, d.New.ID)
		if err != nil {
			return nil, fmt.Errorf("read %q: %w", d.Path, err)
		}
		here := w.hasPointer(d.Path, p)
		wasReplaced := checkedOut && !here
		if !pointer || !plain || wasReplaced {
			continue
		}
		d.Old = d.New
		list = append(list, PointerFile{d, p, here})
	}
	return list, nil
}

// PointerIn parses a blob as a Git LFS pointer. is reports whether it is one, plain is the result
// of lfs.Parse.
func PointerIn(store *objects.Store, blob plumbing.Hash) (p lfs.Pointer, plain, is bool, err error) {
	text, err := store.BlobBytes(blob, lfs.MaxPointer)
	if errors.As(err, new(*objects.TooLargeError)) {
		return p, false, false, nil
	}
	if err != nil {
		return p, false, false, err
	}
	p, plain, is = lfs.Parse(text)
	return p, plain, is, nil
}

// hasPointer reports whether the file at a path is the pointer p.
func (w *Worktree) hasPointer(path string, p lfs.Pointer) bool {
	info, err := w.dir.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() >= lfs.MaxPointer {
		return false
	}
	text, err := regularfile.ReadIn(w.dir, path)
	if err != nil {
		return false
	}
	found, _, isPointer := lfs.Parse(text)
	return isPointer && found == p
}
