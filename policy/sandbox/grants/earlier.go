package grants

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/agent-ci/agent-ci/policy/pathname"
)

// EarlierView shows files with the changes of Folders.EarlierScratch's sandboxes in home and cache folders.
type EarlierView struct {
	overlays     []layers        // one for each home or cache folder with changes
	plainFolders map[string]bool // caches folders that are no links; nil caches nothing
}

// EarlierView returns the view with the changes of EarlierScratch.
func (f Folders) EarlierView() EarlierView {
	var e EarlierView
	if len(f.EarlierScratch) == 0 {
		return e
	}
	add := func(path, name string) {
		l := layers{workspace: path}
		for _, scratch := range f.EarlierScratch {
			if changes := filepath.Join(scratch, name); isFolder(changes) {
				l.changes = append(l.changes, Upper(changes))
			}
		}
		if len(l.changes) > 0 {
			e.overlays = append(e.overlays, l)
		}
	}
	if f.Home != "" {
		if home, err := filepath.EvalSymlinks(f.Home); err == nil {
			add(home, "home")
		}
	}
	var caches []string
	for _, path := range f.cacheFolders() {
		caches = append(append(caches, path), MountsBelow(path)...)
	}
	slices.Sort(caches)
	for _, path := range slices.Compact(caches) {
		add(path, cacheFolder(path))
	}
	return e
}

// lstat returns a file and its place on disk. No folder in path may be a link.
func (e EarlierView) lstat(path string) (info fs.FileInfo, at string, err error) {
	var deepest layers
	for _, l := range e.overlays {
		if pathname.IsInAny(path, l.workspace) && len(l.workspace) >= len(deepest.workspace) {
			deepest = l
		}
	}
	return deepest.lstat(path)
}

// Stat follows an absolute path and returns its file.
func (e EarlierView) Stat(path string) (fs.FileInfo, error) {
	end, err := lookup(e.lstat).walk(e.plainFolders, "/", path, func(string, error) error { return nil })
	if err != nil {
		return nil, fs.ErrNotExist
	}
	info, _, err := e.lstat(end)
	return info, err
}

// PointsInto reports whether an absolute path leads into or through one of the folders, directly or by a
// link. It also reports true for a path that cannot be followed, such as endless links.
func (e EarlierView) PointsInto(path string, folders []string) bool {
	return e.pointsInto("/", path, withResolved(slices.Clone(folders)))
}

// errReached ends a walk that reached one of the folders.
var errReached = errors.New("it leads there")

// pointsInto is PointsInto for a path relative to from. from and real contain no links.
func (e EarlierView) pointsInto(from, path string, real []string) bool {
	_, err := lookup(e.lstat).walk(e.plainFolders, from, path, func(at string, _ error) error {
		if pathname.IsInAny(at, real...) {
			return errReached
		}
		return nil
	})
	return err != nil
}
