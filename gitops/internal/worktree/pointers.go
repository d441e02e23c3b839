package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/lfs"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
)

// PointerFile is a file of the work tree that is still the pointer of a Git LFS file.
type PointerFile struct {
	File    objects.Difference // both sides are the pointer
	Pointer lfs.Pointer
}

// PointerFiles returns the Git LFS files of a tree that are pointers in the work tree, where git-lfs
// would have fetched their contents.
func (w *Worktree) PointerFiles(ctx context.Context, tree plumbing.Hash) ([]PointerFile, error) {
	fetches := func(d repository.FilterDriver) bool { return d.FetchesLFS(os.Getenv) }
	some := false
	for _, driver := range w.repo.Settings.Filters {
		some = some || fetches(driver)
	}
	if !some {
		return nil, nil
	}
	all, err := w.objects.Differences(ctx, plumbing.ZeroHash, tree)
	if err != nil {
		return nil, err
	}
	is := w.filteredBy(tree, fetches)
	var list []PointerFile
	for _, d := range all {
		if d.New.Mode != index.Regular && d.New.Mode != index.Executable || !is(d.Path) {
			continue
		}
		text, err := w.objects.BlobBytes(d.New.ID, lfs.LongestPointer)
		if errors.As(err, new(*objects.TooLargeError)) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read %q: %w", d.Path, err)
		}
		p, plain, pointer := lfs.Parse(text)
		if pointer && plain && w.hasPointer(d.Path, p) {
			d.Old = d.New
			list = append(list, PointerFile{d, p})
		}
	}
	return list, nil
}

// hasPointer reports whether the file at a path is this pointer.
func (w *Worktree) hasPointer(path string, p lfs.Pointer) bool {
	info, err := w.dir.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() >= lfs.LongestPointer {
		return false
	}
	text, err := regularfile.ReadIn(w.dir, path)
	found, _, is := lfs.Parse(text)
	return err == nil && is && found == p
}
