package grants

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy/pathname"
)

// layers finds files as commands see them in an overlaid workspace, whether it is mounted or not. The
// zero value finds files on disk.
type layers struct {
	workspace    string          // without links
	changes      []string        // overlayfs's folders of changes, latest first
	plainFolders map[string]bool // folders known not to be links; nil caches nothing
}

// caching returns layers that remember folders, for many lookups while files do not change.
func (l layers) caching() layers {
	l.plainFolders = map[string]bool{}
	return l
}

// errUnchanged reports that a layer does not change a path.
var errUnchanged = errors.New("unchanged")

// maxLinks bounds the links to follow for a path (path_resolution(7)).
const maxLinks = 40

// layers returns the layers of the overlaid workspace, the newest first. It returns the zero value without an
// overlay or workspace.
func (f Folders) layers() layers {
	workspace, err := filepath.EvalSymlinks(f.Workspace)
	if f.Overlay == "" || err != nil {
		return layers{}
	}
	l := layers{workspace: workspace, changes: []string{Upper(f.Overlay)}}
	for _, frozen := range f.LowerLayers {
		l.changes = append(l.changes, Upper(frozen))
	}
	return l
}

// lstat returns a file's metadata and its place on disk: in the newest layer that changes it, or at path itself.
// No folder in path may be a link.
func (l layers) lstat(path string) (info fs.FileInfo, at string, err error) {
	if inside, is := pathname.Below(l.workspace, path); is {
		for _, changes := range l.changes {
			if info, err = lookIn(changes, inside); !errors.Is(err, errUnchanged) {
				return info, filepath.Join(changes, inside), err
			}
		}
	}
	info, err = os.Lstat(path)
	return info, path, err
}

// lookIn looks up a file in a layer. It returns errUnchanged if the layer does not change the path, and
// fs.ErrNotExist if the layer has removed it. Whiteouts and opaque folders mark removed files (linux,
// Documentation/filesystems/overlayfs.rst).
func lookIn(layer, inside string) (info fs.FileInfo, err error) {
	at, missing := layer, errUnchanged
	for name := range strings.SplitSeq(inside, string(filepath.Separator)) {
		if isOpaque(at) {
			missing = fs.ErrNotExist
		}
		at = filepath.Join(at, name)
		info, err = os.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, missing
		}
		if err != nil || isWhiteout(info) {
			return nil, errors.Join(err, fs.ErrNotExist)
		}
	}
	return info, nil
}

// Opaque is the attribute, with value y, of an overlay folder that hides everything below.
const Opaque = "user.overlay.opaque"

// isOpaque reports whether a layer's folder hides the same folder of the layers below it.
func isOpaque(folder string) bool {
	value := make([]byte, 1)
	n, err := unix.Lgetxattr(folder, Opaque, value)
	return err == nil && n == 1 && value[0] == 'y'
}

func isWhiteout(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode()&fs.ModeCharDevice != 0 && stat.Rdev == 0
}

// resolve resolves the links of a path. It returns an error if the path does not exist.
func (l layers) resolve(path string) (real string, err error) {
	if l.changes == nil {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) { // the usual case, and faster than EvalSymlinks
			return "", err
		}
		return filepath.EvalSymlinks(path)
	}
	return lookup(l.lstat).walk(l.plainFolders, "/", path, func(_ string, err error) error { return err })
}

// lookup returns a file and its place on disk. No folder in path may be a link.
type lookup func(path string) (info fs.FileInfo, at string, err error)

// walk follows a path from a folder without links and returns where it ends. It calls visit with each
// path on the way, including links, and with the error of its lookup. An error of visit ends the walk.
// seen caches folders without links across walks and may be nil.
func (find lookup) walk(seen map[string]bool, from, path string, visit func(at string, err error) error) (end string, err error) {
	at, rest := from, path
	if filepath.IsAbs(path) {
		at = "/"
	}
	for links := 0; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, string(filepath.Separator))
		next := filepath.Join(at, name) // at contains no links, so ".." is its parent
		if seen[next] {
			if err := visit(next, nil); err != nil {
				return "", err
			}
			at = next
			continue
		}
		info, onDisk, lookupErr := find(next)
		if err := visit(next, lookupErr); err != nil {
			return "", err
		}
		isLink := lookupErr == nil && info.Mode()&fs.ModeSymlink != 0
		if !isLink {
			at = next
			if seen != nil && lookupErr == nil && info.IsDir() {
				seen[next] = true
			}
			continue
		}
		link, err := os.Readlink(onDisk)
		if err != nil {
			return "", err
		}
		if links++; links > maxLinks {
			return "", &fs.PathError{Op: "open", Path: path, Err: syscall.ELOOP}
		}
		if filepath.IsAbs(link) {
			at = "/"
		}
		rest = link + string(filepath.Separator) + rest
	}
	return at, nil
}

// resolveIfExists returns a path with resolved links, or nil if it does not exist.
func (l layers) resolveIfExists(path string) []string {
	if real, err := l.resolve(path); err == nil {
		return []string{real}
	}
	return nil
}

// stat follows a path and returns the file.
func (l layers) stat(path string) (info fs.FileInfo, err error) {
	real, err := l.resolve(path)
	if err == nil {
		info, _, err = l.lstat(real)
	}
	return info, err
}

// folders returns where a folder's files are on disk: the folder, and its counterpart in each layer.
func (l layers) folders(folder string) []string {
	all := []string{folder}
	if inside, is := pathname.Below(l.workspace, folder); is {
		for _, changes := range l.changes {
			all = append(all, filepath.Join(changes, inside))
		}
	}
	return all
}
