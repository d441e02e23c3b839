package confine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/policy/sandbox/layer"
)

// KeepCaches keeps a place's changes of home and cache folders under the name kept, together with the files
// of the tree listed in leftovers. Places with this name as Caches start with them. The place must have
// started with setup's caches. Call KeepCaches after the commands ended, before the place is removed.
func (s *Sandboxes) KeepCaches(ctx context.Context, p Place, leftovers []string, kept string) error {
	partial := Place{Scratch: kept + ".partial"} // renamed when it is complete
	err := errors.Join(s.Remove(Place{Scratch: kept}), s.Remove(partial), layer.AwaitUnmounted(ctx, s.overlayFolderOf(p)))
	if err == nil {
		err = s.moveCaches(p, partial, leftovers)
	}
	if err == nil {
		err = s.mergeCaches(ctx, partial)
	}
	if err == nil {
		err = os.Rename(s.scratchPath(partial), s.scratchPath(Place{Scratch: kept}))
	}
	if err != nil {
		return fmt.Errorf("keep caches: %w", errors.Join(err, s.Remove(partial)))
	}
	return nil
}

// moveCaches moves caches and leftovers from one place to another, empty one.
func (s *Sandboxes) moveCaches(from, to Place, leftovers []string) error {
	root, err := os.OpenRoot(s.Record.Join(ScratchFolder))
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range append([]string{"home", "caches"}, grants.MovedCaches...) {
		if err := moveEntry(root, path.Join(from.Scratch, name), path.Join(to.Scratch, name)); err != nil {
			return err
		}
	}
	tree := func(p Place) string { return grants.Upper(path.Join(p.changesScratch(), overlayFolder)) }
	for _, name := range leftovers {
		if err := moveEntry(root, path.Join(tree(from), name), path.Join(tree(to), name)); err != nil {
			return err
		}
	}
	return root.MkdirAll(path.Join(to.Scratch, overlayFolder, "work"), 0o700)
}

// moveEntry moves a file or folder. It makes missing parents with the modes of the old ones. It ignores a
// missing file, because a layer contains only changes.
func moveEntry(root *os.Root, from, to string) error {
	info, err := root.Lstat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = makeFolderLike(root, path.Dir(from), path.Dir(to))
	}
	if err != nil {
		return err
	}
	const writable = 0o200
	if !info.IsDir() || info.Mode()&writable != 0 {
		return root.Rename(from, to)
	}
	if err := root.Chmod(from, info.Mode().Perm()|writable); err != nil { // renaming a folder rewrites its ".."
		return err
	}
	if err := root.Rename(from, to); err != nil {
		return err
	}
	return root.Chmod(to, info.Mode().Perm())
}

// makeFolderLike makes folder with the mode of the folder like, and its parents with those of like's
// parents.
func makeFolderLike(root *os.Root, like, folder string) error {
	if _, err := root.Lstat(folder); err == nil || folder == "." {
		return err
	}
	if err := makeFolderLike(root, path.Dir(like), path.Dir(folder)); err != nil {
		return err
	}
	info, err := root.Lstat(like)
	if err != nil {
		return err
	}
	const open = 0o700
	return root.Mkdir(folder, info.Mode().Perm()|open)
}

// mergeCaches adds setup's changes of home and caches to those of a place, which win.
func (s *Sandboxes) mergeCaches(ctx context.Context, p Place) error {
	setup, into := s.scratchPath(Place{Scratch: SetupScratch}), s.scratchPath(p)
	folders, err := filepath.Glob(filepath.Join(setup, "caches", "*"))
	if err != nil {
		return err
	}
	for _, folder := range append(folders, filepath.Join(setup, "home")) {
		name, err := filepath.Rel(setup, folder)
		if err != nil {
			return err
		}
		later := filepath.Join(into, name)
		for _, part := range []string{grants.Upper(later), filepath.Join(later, "work")} {
			if err := os.MkdirAll(part, 0o700); err != nil {
				return err
			}
		}
		if err := layer.Merge(ctx, folder, later); err != nil {
			return err
		}
	}
	return nil
}

// HasCaches reports whether KeepCaches kept caches under this name.
func (s *Sandboxes) HasCaches(kept string) bool {
	_, err := os.Lstat(s.scratchPath(Place{Scratch: kept}))
	return err == nil
}

// DropCaches removes the caches kept under this name.
func (s *Sandboxes) DropCaches(kept string) error { return s.Remove(Place{Scratch: kept}) }

// HasLeftovers reports whether KeepCaches kept files of the tree under this name.
func (s *Sandboxes) HasLeftovers(kept string) bool { return s.HasChanges(Place{Scratch: kept}) }

// AwaitNewerThanLeftovers waits until new files are newer than all kept ones, even for programs that
// compare times in whole seconds.
func (s *Sandboxes) AwaitNewerThanLeftovers(ctx context.Context, kept string) error {
	info, err := os.Lstat(s.overlayFolderOf(Place{Scratch: kept})) // this folder was made last
	if err != nil {
		return err
	}
	const coarse = 20 * time.Millisecond // the clock of file systems may be this late
	wait := time.NewTimer(time.Until(info.ModTime().Truncate(time.Second).Add(time.Second + coarse)))
	defer wait.Stop()
	select {
	case <-wait.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
