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

// Layers finds files as commands see them in overlaid folders, whether these are mounted or not. The
// zero value finds files on disk.
type Layers struct {
	overlays []overlay
	known    map[string]error // nil for a folder that is not a link, else the error for a missing file; a nil map caches nothing
}

// overlay is a folder with changes above it.
type overlay struct {
	folder  string   // without links
	changes []string // overlayfs's folders of changes, latest first
}

// withCache returns Layers that remember folders and missing files, for many lookups while files do not change.
func (l Layers) withCache() Layers {
	l.known = map[string]error{}
	return l
}

// errUnchanged reports that a layer does not change a path.
var errUnchanged = errors.New("unchanged")

// maxLinks bounds the links to follow for a path (path_resolution(7)).
const maxLinks = 40

// layers returns the layers of the overlaid workspace, the newest first. It returns the zero value without an
// overlay or workspace.
func (f Folders) layers() Layers {
	workspace, err := filepath.EvalSymlinks(f.Workspace)
	if f.Overlay == "" || err != nil {
		return Layers{}
	}
	changes := []string{Upper(f.Overlay)}
	for _, frozen := range f.LowerLayers {
		changes = append(changes, Upper(frozen))
	}
	return Layers{overlays: []overlay{{workspace, changes}}}
}

// changesOf returns the folders of changes of the deepest overlay that contains a path, and the path in them.
func (l Layers) changesOf(path string) (changes []string, inside string) {
	deepest := 0 // the length of the overlay's path
	for _, o := range l.overlays {
		if below, is := pathname.Below(o.folder, path); is && len(o.folder) >= deepest {
			deepest, changes, inside = len(o.folder), o.changes, below
		}
	}
	return changes, inside
}

// lstat returns a file's metadata and its place on disk: in the newest layer that changes it, or at path itself.
// No folder in path may be a link.
func (l Layers) lstat(path string) (info fs.FileInfo, at string, err error) {
	layers, inside := l.changesOf(path)
	for _, changes := range layers {
		if info, err = lookIn(changes, inside); !errors.Is(err, errUnchanged) {
			return info, filepath.Join(changes, inside), err
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
func (l Layers) resolve(path string) (real string, err error) {
	if l.overlays == nil {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) { // the usual case, and faster than EvalSymlinks
			return "", err
		}
		return filepath.EvalSymlinks(path)
	}
	return l.followPath("/", path, func(_ string, err error) error { return err })
}

// followPath follows a path from a folder without links and returns where it ends. It calls visit with each
// path on the way, including links, and with the error of its lookup. An error of visit ends the walk.
func (l Layers) followPath(from, path string, visit func(at string, err error) error) (end string, err error) {
	at, rest := from, path
	if filepath.IsAbs(path) {
		at = "/"
	}
	for links := 0; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, string(filepath.Separator))
		next := filepath.Join(at, name) // at contains no links, so ".." is its parent
		if known, isKnown := l.known[next]; isKnown {
			if err := visit(next, known); err != nil {
				return "", err
			}
			at = next
			continue
		}
		info, onDisk, lookupErr := l.lstat(next)
		if l.known != nil && (errors.Is(lookupErr, fs.ErrNotExist) || lookupErr == nil && info.IsDir()) {
			l.known[next] = lookupErr
		}
		if err := visit(next, lookupErr); err != nil {
			return "", err
		}
		isLink := lookupErr == nil && info.Mode()&fs.ModeSymlink != 0
		if !isLink {
			at = next
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
func (l Layers) resolveIfExists(path string) []string {
	if real, err := l.resolve(path); err == nil {
		return []string{real}
	}
	return nil
}

// Stat follows a path and returns the file.
func (l Layers) Stat(path string) (info fs.FileInfo, err error) {
	real, err := l.resolve(path)
	if err == nil {
		info, _, err = l.lstat(real)
	}
	return info, err
}

// foldersOnDisk returns where a folder's files are on disk: the folder, and its counterpart in each layer.
func (l Layers) foldersOnDisk(folder string) []string {
	all := []string{folder}
	layers, inside := l.changesOf(folder)
	for _, changes := range layers {
		all = append(all, filepath.Join(changes, inside))
	}
	return all
}
