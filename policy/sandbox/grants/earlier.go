package grants

import (
	"errors"
	"path/filepath"
	"slices"

	"github.com/agent-ci/agent-ci/policy/pathname"
)

// EarlierLayers returns home and cache folders with the changes of EarlierScratch's sandboxes.
func (f Folders) EarlierLayers() Layers {
	var l Layers
	if len(f.EarlierScratch) == 0 {
		return l
	}
	add := func(path, name string) {
		o := overlay{folder: path}
		for _, scratch := range f.EarlierScratch {
			if changes := filepath.Join(scratch, name); isFolder(changes) {
				o.changes = append(o.changes, Upper(changes))
			}
		}
		if len(o.changes) > 0 {
			l.overlays = append(l.overlays, o)
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
	return l
}

// PointsInto reports whether an absolute path leads into or through one of the folders, directly or by a
// link. It also reports true for a path that cannot be followed, such as endless links.
func (l Layers) PointsInto(path string, folders []string) bool {
	return l.pointsInto("/", path, withResolved(slices.Clone(folders)))
}

// errReached ends a walk that reached one of the folders.
var errReached = errors.New("it leads there")

// pointsInto is PointsInto for a path relative to from. from and real contain no links.
func (l Layers) pointsInto(from, path string, real []string) bool {
	_, err := l.followPath(from, path, func(at string, _ error) error {
		if pathname.IsInAny(at, real...) {
			return errReached
		}
		return nil
	})
	return err != nil
}
