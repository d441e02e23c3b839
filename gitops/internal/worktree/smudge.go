package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/gitops/internal/program"
	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

// smudger writes files of a tree into a work tree ("smudge" in gitattributes(5)), with the line
// endings and filters that the tree's attributes ask for.
type smudger struct {
	*Worktree
	attributes *attributes
	folders    map[string]bool       // folders that exist and are no links
	landing    bool                  // the places were free a moment ago, so an obstacle is a change by others
	stats      map[string]index.Stat // of the written files, taken right after writing
	sandboxes  *sandboxes
}

// CheckOut applies changes to the work tree. It removes old files first, because a file may become
// a folder or the reverse. tree contains the new sides. It returns the stat data of the written
// files.
func (w *Worktree) CheckOut(ctx context.Context, tree plumbing.Hash, changes []objects.Difference) (map[string]index.Stat, error) {
	if err := w.objects.CheckFiles(ctx, changes); err != nil {
		return nil, err
	}
	s := smudger{Worktree: w, attributes: w.treeAttributes(tree)}
	for i := len(changes) - 1; i >= 0; i-- {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err := s.removeOldSide(changes[i]); err != nil {
			return nil, err
		}
	}
	return s.write(ctx, changes)
}

// removeOldSide removes the old side of a change, and parent folders that become empty.
func (s *smudger) removeOldSide(d objects.Difference) error {
	info, err := s.dir.Lstat(d.Path)
	if regularfile.Absent(err) || regularfile.Obstacle(s.dir, path.Dir(d.Path)) != "" { // a path through a link is not the file of this change
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove %q: %w", d.Path, err)
	}
	if info.IsDir() {
		return s.clearFolder(d)
	}
	if d.Old.Mode == 0 && d.New.Mode == 0 {
		return nil
	}
	if err := s.dir.Remove(d.Path); err != nil {
		return fmt.Errorf("remove %q: %w", d.Path, err)
	}
	if d.New.Mode == 0 {
		s.prune(path.Dir(d.Path))
	}
	return nil
}

// clearFolder removes an empty folder in the way of a new file, and returns an error if it cannot. A
// submodule's folder stays.
func (s *smudger) clearFolder(d objects.Difference) error {
	if d.New.Mode == index.Gitlink {
		return nil
	}
	err := s.dir.Remove(d.Path)
	if err != nil && d.New.Mode != 0 { // 0: nothing comes in its place
		return s.obstructionError(d.Path + "/")
	}
	return nil
}

// obstructionError returns the error for a path that is in the way of writing.
func (s *smudger) obstructionError(by string) error {
	if s.landing {
		return &ChangedError{Paths: []string{by}, PartlyWritten: true}
	}
	return &ObstructedError{Paths: []string{by}}
}

// writeError describes an error of writing the new side of d. Nothing is overwritten, so an existing file is in
// the way.
func (s *smudger) writeError(d objects.Difference, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, fs.ErrExist) {
		err = s.obstructionError(d.Path)
	}
	return fmt.Errorf("write %q: %w", d.Path, err)
}

// prune removes empty folders from dir upwards.
func (s *smudger) prune(dir string) {
	for dir != "." && s.dir.Remove(dir) == nil {
		dir = path.Dir(dir)
	}
}

func pathsOf(changes []objects.Difference) []string {
	paths := make([]string, len(changes))
	for i := range changes {
		paths[i] = changes[i].Path
	}
	return paths
}

// write writes the new sides of changes and returns their stat data. It writes the files that only
// git can convert last. It overwrites nothing.
func (s *smudger) write(ctx context.Context, changes []objects.Difference) (stats map[string]index.Stat, err error) {
	if err := s.attributes.load(ctx, pathsOf(changes)); err != nil {
		return nil, err
	}
	s.folders, s.stats, s.sandboxes = map[string]bool{}, map[string]index.Stat{}, s.newSandboxes()
	defer func() { err = errors.Join(err, s.sandboxes.Close()) }()
	var forGit []objects.Difference
	for _, d := range changes {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if d.New.Mode == 0 {
			continue
		}
		needsGit, err := s.writeFile(ctx, d)
		if err := s.writeError(d, err); err != nil {
			return nil, err
		}
		if needsGit {
			forGit = append(forGit, d)
		}
	}
	if err := s.convertWithGit(ctx, forGit); err != nil {
		return nil, err
	}
	return s.stats, nil
}

// recordStat records a file's stat data right after writing, before somebody else could change the
// file.
func (s *smudger) recordStat(path string, look func() (fs.FileInfo, error)) error {
	info, err := look()
	if err == nil {
		s.stats[path] = index.StatOf(info)
	}
	return err
}

// writeFile writes the new side of a difference. It writes nothing and returns needsGit if only git can
// do the conversions that the attributes ask for.
func (s *smudger) writeFile(ctx context.Context, d objects.Difference) (needsGit bool, err error) {
	if err := s.makeFolder(path.Dir(d.Path)); err != nil {
		return false, err
	}
	switch d.New.Mode {
	case index.Gitlink:
		err := s.dir.Mkdir(d.Path, 0o777)
		if errors.Is(err, fs.ErrExist) {
			err = nil
		}
		return false, err
	case index.Symlink:
		if s.repo.Settings.Symlinks {
			return false, s.writeLink(d)
		}
		return false, s.writeBlob(ctx, d)
	}
	attrs := s.attributes.of(d.Path)
	if s.repo.Settings.NeedsGit(attrs) || s.repo.Settings.AddsCR(attrs) {
		return true, nil
	}
	return false, s.writeBlob(ctx, d)
}

// makeFolder makes a folder and its parents. It returns an error if one of them is a link or a file.
func (s *smudger) makeFolder(dir string) error {
	if dir == "." || s.folders[dir] {
		return nil
	}
	if obstacle := regularfile.Obstacle(s.dir, dir); obstacle != "" {
		return s.obstructionError(obstacle)
	}
	if err := s.dir.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	s.folders[dir] = true
	return nil
}

// writeLink makes a symbolic link and records its stat data.
func (s *smudger) writeLink(d objects.Difference) error {
	const longest = 1 << 16
	target, err := s.objects.BlobBytes(d.New.ID, longest)
	if err != nil {
		return err
	}
	if err := s.dir.Symlink(string(target), d.Path); err != nil {
		return err
	}
	return s.recordStat(d.Path, func() (fs.FileInfo, error) { return s.dir.Lstat(d.Path) })
}

// writeBlob writes a blob through its filter.
func (s *smudger) writeBlob(ctx context.Context, d objects.Difference) error {
	r, _, err := s.objects.Blob(d.New.ID)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	return s.createFiltered(ctx, d, regularfile.Until(ctx, r))
}

// createFiltered creates a file from content. If the file has a filter, it writes the filter's result, or
// the copy in the original tree.
func (s *smudger) createFiltered(ctx context.Context, d objects.Difference, content io.Reader) error {
	name := ""
	if d.New.Mode != index.Symlink {
		name = s.repo.Settings.FilterOf(s.attributes.of(d.Path))
	}
	if name == "" {
		return s.create(d, content)
	}
	if made, err := s.openInOriginalTree(ctx, d); err != nil {
		return err
	} else if made != nil {
		return errors.Join(s.create(d, regularfile.Until(ctx, made)), made.Close())
	}
	raw, err := s.spoolToFile(ctx, content)
	if err != nil {
		return err
	}
	defer raw.Close()
	result, err := s.sandboxes.convert(ctx, name, toWorkTree, d.Path, raw)
	if err != nil {
		return err
	}
	return errors.Join(s.create(d, regularfile.Until(ctx, result)), result.Close())
}

// create makes a new file with content and records its stat data. It never replaces a file.
func (s *smudger) create(d objects.Difference, content io.Reader) error {
	perm := fs.FileMode(0o666)
	if d.New.Mode == index.Executable {
		perm = 0o777
	}
	f, err := s.dir.OpenFile(d.Path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, perm)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if err == nil {
		err = s.recordStat(d.Path, f.Stat)
	}
	return errors.Join(err, f.Close())
}

// convertWithGit lets git convert files in a stage, then copies them to their places. The stage has
// the .gitattributes files of the same tree, so git applies their attributes.
func (s *smudger) convertWithGit(ctx context.Context, list []objects.Difference) (err error) {
	if len(list) == 0 {
		return nil
	}
	var paths bytes.Buffer
	for _, d := range list {
		paths.WriteString(d.Path + "\x00")
	}
	files := objects.Updates(list, nil)
	if err := s.objects.OwnFiles(ctx, files); err != nil {
		return err
	}
	staged, err := s.attributes.newStage(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, staged.remove()) }()
	if _, err := staged.runGit(ctx, files, &paths, "checkout-index", "-q", "-f", "-z", "--stdin"); err != nil {
		return fmt.Errorf("convert %d files: %w", len(list), err)
	}
	return s.placeAll(ctx, list, staged.root)
}

// Fill checks out a tree into root, the work tree of another git folder, and stages it. The git
// program is faster, but cannot be used if there are filters: that folder's configuration names
// filters, which may only run in a sandbox.
func (w *Worktree) Fill(ctx context.Context, root *os.Root, tree plumbing.Hash) error {
	if len(w.repo.Settings.FilterNames()) > 0 {
		return w.at(root).FillItself(ctx, tree)
	}
	own, err := w.repo.PrivateGit()
	if err != nil {
		return err
	}
	git := program.Isolated(own.Path, os.Environ(), w.repo.Root, filepath.Join(root.Name(), ".git"), root.Name())
	if _, err := git.Run(ctx, root.Name(), nil, "read-tree", tree.String()); err != nil {
		return err
	}
	_, err = git.Run(ctx, root.Name(), nil, "checkout-index", "-q", "-a", "-u")
	return err
}

// FillItself checks out a tree into the work tree, which has no files and no index, without the git program.
func (w *Worktree) FillItself(ctx context.Context, tree plumbing.Hash) error {
	s := smudger{Worktree: w, attributes: w.treeAttributes(tree)}
	changes, err := w.objects.Differences(ctx, plumbing.ZeroHash, tree)
	if err != nil {
		return err
	}
	stats, err := s.write(ctx, changes)
	if err != nil {
		return err
	}
	return index.WriteNew(filepath.Join(w.dir.Name(), ".git", "index"), objects.Updates(changes, stats))
}
