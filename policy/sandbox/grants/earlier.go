package grants

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Earlier looks at files as commands see them with what the sandboxes of Folders.Below changed
// in the user's folder and in those of caches.
type Earlier struct {
	homes []layers        // each of one folder
	seen  map[string]bool // what is no link, where many are looked for at one time; nil where each is looked at anew
}

// Earlier is how files look with the changes of Below.
func (f Folders) Earlier() Earlier {
	var e Earlier
	add := func(path, name string) {
		l := layers{workspace: path}
		for _, scratch := range f.Below {
			if changes := filepath.Join(scratch, name); isFolder(changes) {
				l.changes = append(l.changes, Upper(changes))
			}
		}
		if len(l.changes) > 0 {
			e.homes = append(e.homes, l)
		}
	}
	if home, err := filepath.EvalSymlinks(f.Home); err == nil && f.Home != "" {
		add(home, "home")
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

// lstat tells of the file at a path no folder of which is a link, and where it lies on disk.
func (e Earlier) lstat(path string) (info fs.FileInfo, at string, err error) {
	var deepest layers
	for _, l := range e.homes {
		if within(path, []string{l.workspace}) && len(l.workspace) >= len(deepest.workspace) {
			deepest = l
		}
	}
	return deepest.lstat(path)
}

// Stat tells of the file that an absolute path leads to.
func (e Earlier) Stat(path string) (info fs.FileInfo, err error) {
	err = fs.ErrNotExist
	whole := e.walk("/", path, func(at string) bool {
		info, _, err = e.lstat(at)
		return true
	})
	if !whole {
		return nil, fs.ErrNotExist
	}
	return info, err
}

// LeadsInto says whether an absolute path lies in one of some folders, or a link on its way leads
// there. What leads nowhere, since its links have no end, counts.
func (e Earlier) LeadsInto(path string, folders []string) bool {
	return e.leads("/", path, withReal(slices.Clone(folders)))
}

// leads is LeadsInto of a path that starts at a folder without links on its way.
func (e Earlier) leads(from, path string, real []string) bool {
	return !e.walk(from, path, func(at string) bool { return !within(at, real) })
}

// walk goes the way of a path from a folder without links on its way, and tells of each place,
// links among them, until that says no. whole says that it went to the end.
func (e Earlier) walk(from, path string, place func(at string) bool) (whole bool) {
	at, rest := from, path
	if filepath.IsAbs(path) {
		at = "/"
	}
	for links := 0; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, string(filepath.Separator))
		next := filepath.Join(at, name) // at has no links, so that ".." is right
		if !place(next) {
			return false
		}
		if e.seen[next] {
			at = next
			continue
		}
		info, where, err := e.lstat(next)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			if at = next; e.seen != nil && err == nil {
				e.seen[next] = true
			}
			continue
		}
		link, err := os.Readlink(where)
		if links++; err != nil || links > mostLinks {
			return false
		}
		if filepath.IsAbs(link) {
			at = "/"
		}
		rest = link + string(filepath.Separator) + rest
	}
	return true
}
