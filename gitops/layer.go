package gitops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/copytree"
	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
	"github.com/agent-ci/agent-ci/gitops/internal/scan"
	"github.com/agent-ci/agent-ci/gitops/internal/worktree"
	"github.com/agent-ci/agent-ci/policy/pathname"
)

// Layer is a Linux overlay above the checkout, or a copy of it: the tree that commands see, and its
// changes alone.
type Layer = worktree.Layer

// InLayer returns the checkout with a layer as its work tree, on the current base and with the
// current hidden paths. Changes and WithLayer of the result read only the layer.
// ApplyChange, Overwrite and Revert write to the layer. Do not close the result, and do not use it
// after c or the layer is closed.
func (c *Checkout) InLayer(l Layer) *Checkout {
	in := *c
	in.work = c.work.In(l)
	return &in
}

// WithLayer returns a snapshot with a layer's untracked files added, as if they had been in the
// checkout before. Its Dirty files are those that the layer changed. c is the checkout in the layer.
func (c *Checkout) WithLayer(ctx context.Context, snap *Snapshot) (*Snapshot, error) {
	more := &Snapshot{index: snap.index, untracked: maps.Clone(snap.untracked)}
	_, dirty, err := c.scanWithContent(ctx, snap.index, func(f scan.Found) { more.setUntracked(f.Path, f.Dir) })
	if err != nil {
		return nil, fmt.Errorf("record the layer: %w", err)
	}
	more.dirty = dirty
	return more, nil
}

// IgnoredFiles lists the files, links and whole folders in a layer that git ignores. c is the checkout
// in the layer. It skips unchanged files.
func (c *Checkout) IgnoredFiles(ctx context.Context, snap *Snapshot) (paths []string, err error) {
	s := scan.New(c.work.ScanTree(), snap.index, func(f scan.Found) {
		if f.Kind == scan.Ignored {
			paths = append(paths, f.Path)
		}
	})
	if err := s.Run(ctx); err != nil {
		return nil, fmt.Errorf("look for ignored files: %w", err)
	}
	slices.Sort(paths)
	return paths, nil
}

// Written holds the stat data of written files.
type Written map[string]index.Stat

// Overwrite writes a tree to a layer on the base that contains no work worth keeping: it also
// removes untracked files in the way.
func (c *Checkout) Overwrite(ctx context.Context, base, tree Tree) (Written, error) {
	var written Written
	changes, err := c.objects.Differences(ctx, base.Hash(), tree.Hash())
	for _, d := range changes {
		if !objects.ValidPath(d.Path) {
			err = errors.Join(err, fmt.Errorf("%q is no path of a checkout", d.Path))
		}
	}
	if err == nil {
		written, err = c.work.Overwrite(ctx, tree.Hash(), changes)
	}
	if err != nil {
		return nil, fmt.Errorf("put the change into a layer: %w", err)
	}
	return written, nil
}

// UnlinkSubmodules removes the .git files of submodules from a layer, because git fails on a .git file
// whose target is missing. It keeps a .git file whose target was copied to gitDir, a git folder of
// MakeGitFolder.
func (c *Checkout) UnlinkSubmodules(ctx context.Context, l Layer, gitDir string) error {
	paths, err := c.Submodules(ctx)
	if err != nil {
		return err
	}
	for _, submodule := range paths {
		link := path.Join(submodule, ".git")
		info, err := l.Tree.Lstat(link)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		target := c.repo.NamedBy(l.Tree, link)
		if within, is := pathname.Below(c.repo.GitDir, target); is {
			if _, err := os.Lstat(filepath.Join(gitDir, within)); err == nil {
				continue
			}
		}
		if err := l.Tree.Remove(link); err != nil {
			return fmt.Errorf("part a submodule from its repository: %w", err)
		}
	}
	return nil
}

// IsBeginning reports whether the content of whole begins with the content of part, which may be a
// half-written file. Both are blob ids of change sets. A blob's id is the hash of its size and
// content, so it is enough to hash the first bytes of whole, as many as part has.
func (c *Checkout) IsBeginning(part, whole string) (begins bool, err error) {
	partContent, partSize, err := c.objects.Blob(plumbing.NewHash(part))
	if err != nil {
		return false, err
	}
	if err := partContent.Close(); err != nil { // only the size is needed
		return false, err
	}
	content, size, err := c.objects.Blob(plumbing.NewHash(whole))
	if err != nil {
		return false, err
	}
	if size < partSize {
		return false, content.Close()
	}
	hash := plumbing.NewHasher(plumbing.BlobObject, partSize)
	_, err = io.CopyN(hash, content, partSize)
	return hash.Sum() == plumbing.NewHash(part), errors.Join(err, content.Close())
}

// GitFolder describes a git folder that replaces the checkout's own .git in a layer.
type GitFolder struct {
	Dir string // created, outside the work tree
	// CopySettingsFrom is an earlier such folder. Its settings, hooks and submodule repositories are copied. It
	// may be missing.
	CopySettingsFrom string
	TreeForCommands
}

// MakeGitFolder makes a git folder to be mounted as the .git of the checkout. It borrows the
// checkout's objects from the mount points that LentObjects returns for Root. It has no references
// before FillGitFolder, and no index before WriteIndex.
func (c *Checkout) MakeGitFolder(ctx context.Context, o GitFolder) error {
	err := c.prepareGitDir(o.Dir, filepath.Join(c.repo.Root, ".git"), o.TreeForCommands)
	if err == nil && o.CopySettingsFrom != "" {
		err = copySettings(ctx, o.CopySettingsFrom, o.Dir)
	}
	if err != nil {
		return fmt.Errorf("make a git folder: %w", err)
	}
	return nil
}

// FillGitFolder adds the tree's objects and the references to a git folder of MakeGitFolder, which
// may be mounted already.
func (c *Checkout) FillGitFolder(ctx context.Context, o GitFolder) error {
	if err := c.fillGitDir(ctx, o.Dir, o.TreeForCommands); err != nil {
		return fmt.Errorf("make a git folder: %w", err)
	}
	return nil
}

// copySettings copies the configuration, hooks and submodule repositories of the git folder
// like to dir. Commands may have written that folder. It ignores a missing folder.
func copySettings(ctx context.Context, like, dir string) error {
	from, err := os.OpenRoot(like)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer to.Close()
	config, err := regularfile.ReadIn(from, "config")
	if err != nil {
		return fmt.Errorf("setup commands left no configuration of git: %w", err)
	}
	if err := to.WriteFile("config", config, 0o600); err != nil {
		return err
	}
	return errors.Join(copytree.Folder(ctx, to, from, "hooks"), copytree.Folder(ctx, to, from, "modules"))
}

// WriteIndex writes the index of a git folder made by MakeGitFolder. The files of its tree are those of the snapshot.
func (c *Checkout) WriteIndex(ctx context.Context, o GitFolder) error {
	ix, err := c.IndexOf(ctx, o)
	if err == nil {
		err = ix.Write(nil)
	}
	return err
}

// GitIndex is the index of a git folder made by MakeGitFolder, before it is written.
type GitIndex struct {
	folder  GitFolder
	changes []objects.Difference // from the snapshot's index to the folder's tree
}

// IndexOf compares the tree of a git folder with its snapshot.
func (c *Checkout) IndexOf(ctx context.Context, o GitFolder) (GitIndex, error) {
	ix := GitIndex{folder: o}
	err := c.objects.CompareIndex(ctx, o.Snapshot.index, o.Tree.Hash(), func(path string, e objects.Entry) {
		ix.changes = append(ix.changes, objects.Difference{Path: path, New: e})
	})
	if err != nil {
		return ix, fmt.Errorf("make a git folder: %w", err)
	}
	return ix, nil
}

// Write writes the index. It contains the stat data of unchanged and written files, so that git reads
// none of them again.
func (ix GitIndex) Write(written Written) error {
	err := index.WriteFile(filepath.Join(ix.folder.Dir, "index"), ix.folder.Snapshot.index, objects.Updates(ix.changes, written))
	if err != nil {
		return fmt.Errorf("make a git folder: %w", err)
	}
	return nil
}

// ChangedSince lists the paths of the checkout that differ from the snapshot: tracked, untracked
// and ignored files and links. It does not look into folders that are ignored as a whole. It reads
// the content only of tracked files with changed stat data.
func (c *Checkout) ChangedSince(ctx context.Context, snap *Snapshot) ([]string, error) {
	files := func(yield func(string, index.Stat) bool) {
		for path, u := range snap.untracked {
			if u.Stat != nil && !yield(path, *u.Stat) {
				return
			}
		}
	}
	if scan.New(c.work.ScanTree(), snap.index, nil).Same(ctx, snap.folders, files) {
		return nil, nil
	}
	var changed []string
	seen := map[string]bool{}
	_, dirty, err := c.scanWithContent(ctx, snap.index, func(f scan.Found) {
		seen[f.Path] = true
		before := snap.untracked[f.Path].Stat
		isNew := before == nil && !snap.wasUntracked(f.Path)
		isModified := before != nil && *before != f.Stat()
		if isNew || isModified {
			changed = append(changed, f.Path)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("look for what others changed: %w", err)
	}
	changed = slices.AppendSeq(changed, maps.Keys(dirty))
	for path, u := range snap.untracked {
		if u.Stat != nil && !seen[path] && !c.work.Hides(path) { // it was deleted
			changed = append(changed, path)
		}
	}
	slices.Sort(changed)
	return slices.Compact(changed), nil
}

// WhyNoLayer explains why no layer is possible above the checkout, as far as git can tell without
// reading files. It returns "" if a layer is possible. All files must belong to uid and gid; for
// uid 0, untracked ones may belong to anybody.
func (c *Checkout) WhyNoLayer(ctx context.Context, uid, gid uint32) (string, error) {
	if info, err := os.Lstat(filepath.Join(c.repo.Root, ".git")); err != nil || !info.IsDir() {
		return "its .git is not a folder but leads to one elsewhere", nil
	}
	ix, err := c.repo.Index(ctx)
	if err != nil {
		return "", fmt.Errorf("look for what keeps a layer off: %w", err)
	}
	if path := ix.AssumedUnchanged(); path != "" {
		return fmt.Sprintf("git overlooks what becomes of %q (assume-unchanged or skip-worktree)", path), nil
	}
	other, err := scan.Owner{UID: uid, GID: gid}.WhyForeign(ctx, c.work.ScanTree(), ix)
	if err != nil {
		return "", fmt.Errorf("look for what keeps a layer off: %w", err)
	}
	return other, nil
}
