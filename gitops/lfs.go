package gitops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/gitops/internal/lfs"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/worktree"
)

// LFSFile is the content of a Git LFS file. Its Open verifies the hash and returns a *FilterError for a
// mismatch.
type LFSFile = lfs.Object

// OpenLFS opens the content behind a pointer blob of a change set and returns its size. It returns
// nil if the blob is no pointer or the content is missing.
func (c *Checkout) OpenLFS(ctx context.Context, id string) (content io.ReadCloser, size int64, err error) {
	file, isPointer, err := c.lfsFile(id)
	if err != nil {
		return nil, 0, err
	}
	if !isPointer || file.Open == nil {
		return nil, 0, nil
	}
	content, err = file.Open(ctx)
	if err != nil {
		return nil, 0, err
	}
	return content, file.Size, nil
}

// lfsFile returns the Git LFS file of a pointer blob. is reports whether the blob is a pointer.
func (c *Checkout) lfsFile(id string) (file LFSFile, is bool, err error) {
	p, _, is, err := worktree.PointerIn(c.objects, plumbing.NewHash(id))
	if err != nil {
		return LFSFile{}, false, fmt.Errorf("look for Git LFS files: %w", err)
	}
	if !is {
		return LFSFile{}, false, nil
	}
	file = LFSFile{Pointer: p}
	if store := c.work.Filters.LFS; store.Has(p) {
		file.Open = func(ctx context.Context) (*os.File, error) {
			content, err := store.Open(ctx, p)
			if errors.As(err, new(*lfs.DamagedError)) {
				err = &FilterError{Key: "filter.lfs", Why: err.Error(), Err: err}
			}
			return content, err
		}
	}
	return file, true, nil
}

// LFSFiles returns the Git LFS files whose content a change adds or modifies. It omits files that
// were only moved.
func (c *Checkout) LFSFiles(ctx context.Context, cs *ChangeSet) ([]LFSFile, error) {
	return c.lfsFilesOf(ctx, cs.Tree, cs.NewContent())
}

// lfsFilesOf returns the Git LFS files among files of a tree, each content once.
func (c *Checkout) lfsFilesOf(ctx context.Context, tree Tree, files []changeset.File) (list []LFSFile, err error) {
	filters, err := c.work.FiltersByPath(ctx, tree.Hash(), changeset.Paths(files))
	if err != nil {
		return nil, fmt.Errorf("look for Git LFS files: %w", err)
	}
	seen := map[string]bool{}
	for _, f := range files {
		if name := filters[f.Path]; name == "" || !c.repo.Settings.Filters[name].LFS() {
			continue
		}
		file, is, err := c.lfsFile(f.NewID)
		if err != nil {
			return nil, err
		}
		if is && !seen[file.OID] {
			list = append(list, file)
		}
		seen[file.OID] = true
	}
	return list, nil
}

// copyLFSToRepository copies the contents of a change's Git LFS files, if they are available, to the
// repository's own store, where git-lfs finds them.
func (c *Checkout) copyLFSToRepository(ctx context.Context, cs *ChangeSet) error {
	files, err := c.LFSFiles(ctx, cs)
	if err != nil {
		return err
	}
	return copyLFSContents(ctx, c.repo.CommonDir, files)
}

// copyLFSForCommands copies new contents of a tree's Git LFS files to a git folder for commands. git-lfs finds
// the base's contents through the borrowed objects.
func (c *Checkout) copyLFSForCommands(ctx context.Context, gitDir string, s TreeForCommands) error {
	if !c.usesLFS() {
		return nil
	}
	differences, err := c.objects.Differences(ctx, s.Base.Tree.Hash(), s.Tree.Hash())
	if err != nil {
		return err
	}
	var added []changeset.File
	for _, d := range differences {
		if d.New.Mode != 0 {
			added = append(added, changeset.File{Path: d.Path, NewID: d.New.ID.String()})
		}
	}
	files, err := c.lfsFilesOf(ctx, s.Tree, added)
	if err != nil {
		return err
	}
	return copyLFSContents(ctx, gitDir, files)
}

// usesLFS reports whether git's configuration has git-lfs as a filter.
func (c *Checkout) usesLFS() bool {
	for _, driver := range c.repo.Settings.Filters {
		if driver.LFS() {
			return true
		}
	}
	return false
}

// copyLFSContents copies the available contents into the store of a git folder.
func copyLFSContents(ctx context.Context, gitDir string, files []LFSFile) error {
	into := lfs.Store{OwnFolder: filepath.Join(gitDir, "lfs")}
	for _, f := range files {
		if f.Open == nil {
			continue
		}
		if err := into.Take(ctx, f); err != nil {
			if link, is := errors.AsType[*lfs.LinkError](err); is {
				err = &FilterError{Key: "filter.lfs", Why: link.Error(), Err: err}
			}
			return fmt.Errorf("keep Git LFS files: %w", err)
		}
	}
	return nil
}

// MissingLFSError reports Git LFS files whose content is missing. The work tree contains their
// pointers.
type MissingLFSError struct {
	Path   string // of the first such file
	Others int    // number of further files
	Err    error
}

func (e *MissingLFSError) Error() string {
	more := ""
	if e.Others > 0 {
		more = fmt.Sprintf(", and that of %d more", e.Others)
	}
	return fmt.Sprintf("The content of the Git LFS file %q is missing%s: %v", e.Path, more, e.Err)
}

func (e *MissingLFSError) Unwrap() error { return e.Err }

// FetchLFS downloads the contents of Git LFS files for a branch into folder.
type FetchLFS func(ctx context.Context, branch, folder string, list []LFSFile) error

// FillLFS fetches the contents of the base's Git LFS files and replaces their pointers in the
// checkout with them. It fetches only what the configuration of git-lfs allows. It returns a
// *MissingLFSError if contents are still missing.
func (c *Checkout) FillLFS(ctx context.Context, fetch FetchLFS) error {
	files, err := c.work.PointerFiles(ctx, c.Base().Tree.Hash(), c.Base().Tree == c.StartCommit().Tree)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return nil
	}
	store := c.work.Filters.LFS
	var wanted []LFSFile
	seen := map[string]bool{}
	for _, f := range files {
		isTooLarge := f.Pointer.Size > worktree.LargestChange
		if !isTooLarge && !seen[f.Pointer.OID] && !store.Has(f.Pointer) {
			wanted = append(wanted, LFSFile{Pointer: f.Pointer})
		}
		seen[f.Pointer.OID] = true
	}
	var fetchErr error
	if len(wanted) > 0 {
		fetchErr = fetch(ctx, c.Base().Branch, filepath.Join(c.repo.CommonDir, "lfs"), wanted)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var missing *MissingLFSError
	var changes []objects.Difference
	for _, f := range files {
		switch {
		case f.Pointer.Size <= worktree.LargestChange && store.Has(f.Pointer):
			if f.Here { // the other files are written with the base
				changes = append(changes, f.File)
			}
		case missing == nil:
			missing = &MissingLFSError{Path: f.File.Path, Err: fetchErr}
		default:
			missing.Others++
		}
	}
	if missing != nil && missing.Err == nil {
		missing.Err = fmt.Errorf("it has more than %d bytes", worktree.LargestChange)
	}
	if err := c.rewriteFiles(ctx, changes); err != nil {
		return fmt.Errorf("write Git LFS files: %w", err)
	}
	if missing != nil {
		return missing
	}
	return nil
}

// rewriteFiles writes files of the base again and updates the index.
func (c *Checkout) rewriteFiles(ctx context.Context, files []objects.Difference) (err error) {
	if len(files) == 0 {
		return nil
	}
	release, err := c.LockIndex(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	ix, err := c.repo.Index(ctx)
	if err != nil {
		return err
	}
	tree := c.Base().Tree.Hash()
	if err := c.checkOutOver(ctx, ix, tree, tree, files); err != nil {
		return err
	}
	c.startIndex, err = c.repo.Index(ctx)
	return err
}
