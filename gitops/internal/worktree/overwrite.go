package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/internal/index"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
)

// CheckOutOver is CheckOut where nothing may be lost that neither the index tracks nor
// the tree from has: the old sides of changes belong to from. It is an
// *ObstructedError, or a *ChangedError, which others may bring about while it writes.
func (w *Worktree) CheckOutOver(ctx context.Context, ix *index.File, from, to plumbing.Hash, changes []objects.Difference) (map[string]index.Stat, error) {
	if err := w.obstructions(ix, changes); err != nil {
		return nil, err
	}
	if w.InLayer() { // nothing runs that could write there
		return w.CheckOut(ctx, to, changes)
	}
	known, err := w.untouched(ctx, ix, from, changes)
	if err != nil {
		return nil, err
	}
	return w.checkOut(ctx, to, changes, known)
}

// CheckOutKnown is CheckOut that takes away only files of which the stat data is known,
// and still what it was. It is a *ChangedError where something else stands.
func (w *Worktree) CheckOutKnown(ctx context.Context, to plumbing.Hash, changes []objects.Difference, stats map[string]index.Stat) error {
	known := make(map[string]index.Stat, len(stats))
	for path, stat := range stats {
		known[path] = lasting(stat)
	}
	_, err := w.checkOut(ctx, to, changes, known)
	return err
}

// lasting is what stays of the stat data of a file under another name, or after a restart.
func lasting(stat index.Stat) index.Stat {
	stat.CtimeSec, stat.CtimeNsec, stat.Dev = 0, 0, 0
	return stat
}

// untouched makes sure that what stands in the work tree is the old side of each change,
// or is gone, and gives the stat data of it.
func (w *Worktree) untouched(ctx context.Context, ix *index.File, from plumbing.Hash, changes []objects.Difference) (map[string]index.Stat, error) {
	known := map[string]index.Stat{}
	var changed []string
	var suspects []Suspect
	for _, d := range changes {
		info, err := w.dir.Lstat(d.Path)
		if d.Old.Mode == 0 || d.Old.Mode == index.Gitlink || err != nil || obstacleAt(w.dir, path.Dir(d.Path)) != "" {
			continue // nothing is there
		}
		known[d.Path] = lasting(index.StatOf(info))
		switch mode := modeOf(&w.repo.Settings, info, d.Old.Mode); {
		case mode != d.Old.Mode:
			changed = append(changed, d.Path)
		case !w.asIndexed(ix, d, info):
			suspects = append(suspects, Suspect{Path: d.Path, Info: info, Mode: mode, entry: -1, old: d.Old.ID})
		}
	}
	c := cleaner{Worktree: w, attributes: w.treeAttributes(from)}
	if err := c.clean(ctx, suspects); err != nil {
		return nil, err
	}
	for _, s := range suspects {
		if s.ID != s.old {
			changed = append(changed, s.Path)
		}
	}
	if len(changed) > 0 {
		return nil, &ChangedError{Paths: changed}
	}
	return known, nil
}

// asIndexed says that a file is the old side of a change by its stat data alone.
func (w *Worktree) asIndexed(ix *index.File, d objects.Difference, info fs.FileInfo) bool {
	i, ok := ix.Search(d.Path)
	if !ok {
		return false
	}
	e := ix.Entry(i)
	return e.ID == d.Old.ID && e.Mode == d.Old.Mode && unchanged(&w.repo.Settings, e.Stat, info, ix.Modified)
}

// asideFile has for a moment what is about to be removed: what somebody writes between a
// look at a file and its removal would be lost.
const asideFile = ".git/agent-ci-aside"

// remove removes a file. It is a *ChangedError where only what is known may go and
// something else is there.
func (s *smudger) remove(file string) error {
	if s.known == nil {
		return s.dir.Remove(file)
	}
	if _, err := s.dir.Lstat(asideFile); err == nil {
		return &AsideError{Path: s.dir.Name() + "/" + asideFile}
	}
	if s.dir.Rename(file, asideFile) != nil { // .git is no folder, or of another file system
		return s.removeKnown(file, file)
	}
	err := s.removeKnown(file, asideFile)
	if err != nil {
		err = errors.Join(err, s.bringBack(file))
	}
	return err
}

// removeKnown removes what was a file of the work tree and is called name now.
func (s *smudger) removeKnown(file, name string) error {
	info, err := s.dir.Lstat(name)
	if err != nil {
		return err
	}
	if was, ok := s.known[file]; !ok || was != lasting(index.StatOf(info)) {
		return &ChangedError{Paths: []string{file}, Begun: true}
	}
	return s.dir.Remove(name)
}

// bringBack gives what was set aside its place again, unless something else has it by
// now: that is newer.
func (s *smudger) bringBack(file string) error {
	err := s.dir.Link(asideFile, file)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return s.dir.Remove(asideFile)
	}
	if _, err := s.dir.Lstat(file); err == nil {
		return s.dir.Remove(asideFile)
	}
	return s.dir.Rename(asideFile, file) // where there are no links
}

// AsideError says that a file lies aside that a process had set there which died.
type AsideError struct{ Path string }

func (e *AsideError) Error() string {
	return fmt.Sprintf("%s has a file that was set aside for a moment by a run that died then: look at it, and move it to its place or away", e.Path)
}

// DropAside removes what a process that died had set aside, if it is one of these objects.
// Anything else somebody wrote, and it is an *AsideError.
func (w *Worktree) DropAside(ids []plumbing.Hash) error {
	info, err := w.dir.Lstat(asideFile)
	if err != nil {
		return nil //nolint:nilerr // nothing is there
	}
	one := []Suspect{{Path: asideFile, Info: info, Mode: modeOf(&w.repo.Settings, info, 0), entry: -1}}
	c := cleaner{Worktree: w, attributes: w.treeAttributes(plumbing.ZeroHash)}
	if err := c.clean(context.Background(), one); err != nil {
		return err
	}
	if !slices.Contains(ids, one[0].ID) {
		return &AsideError{Path: w.dir.Name() + "/" + asideFile}
	}
	return w.dir.Remove(asideFile)
}

// obstructions refuses changes whose new files would overwrite something that
// is not tracked.
func (w *Worktree) obstructions(ix *index.File, changes []objects.Difference) error {
	var paths []string
	for _, d := range changes {
		if d.Old.Mode != 0 || d.New.Mode == 0 {
			continue
		}
		obstacle, err := w.obstacle(ix, d)
		if err != nil {
			return err
		}
		if obstacle != "" && !slices.Contains(paths, obstacle) {
			paths = append(paths, obstacle)
		}
	}
	if len(paths) > 0 {
		return &ObstructedError{Paths: paths}
	}
	return nil
}

// obstacle is what is not tracked and stands where a new file belongs, or a folder
// above it; empty for nothing.
func (w *Worktree) obstacle(ix *index.File, d objects.Difference) (string, error) {
	if above := obstacleAt(w.dir, path.Dir(d.Path)); above != "" {
		if w.tracks(ix, above) {
			return "", nil
		}
		return above, nil
	}
	info, err := w.dir.Lstat(d.Path)
	switch {
	case err != nil:
		return "", nil //nolint:nilerr // nothing is there
	case !w.tracks(ix, d.Path):
		return d.Path, nil
	case !info.IsDir() || d.New.Mode == index.Gitlink:
		return "", nil
	}
	return w.untrackedBelow(ix, d.Path)
}

// untrackedBelow is something in a folder that is not tracked; empty for nothing.
func (w *Worktree) untrackedBelow(ix *index.File, folder string) (found string, err error) {
	dir, err := w.dir.Open(folder)
	if err != nil {
		return "", err
	}
	entries, err := dir.ReadDir(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return "", err
	}
	for _, e := range entries {
		name := path.Join(folder, e.Name())
		switch {
		case e.IsDir():
			found, err = w.untrackedBelow(ix, name)
		case !w.tracks(ix, name):
			found = name
		}
		if found != "" || err != nil {
			return found, err
		}
	}
	return "", nil
}

// tracks says whether the index has the path or something below it.
func (w *Worktree) tracks(ix *index.File, path string) bool {
	if _, ok := ix.Search(path); ok {
		return true
	}
	lo, hi := ix.Folder(path+"/", 0, ix.Len())
	return lo < hi
}
