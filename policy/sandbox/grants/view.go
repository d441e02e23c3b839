package grants

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/agent-ci/agent-ci/policy/pathname"
	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

// View tells agent-ci which files commands see, so that agent-ci reads no others for the model. It does
// not know credentials created later. A nil View hides nothing.
type View struct {
	entries []viewEntry     // the deepest entry that contains a path decides
	secrets map[fileID]bool // files and folders hidden under any name
}

// fileID identifies a file regardless of its name.
type fileID struct{ device, inode uint64 }

func idOf(info fs.FileInfo) fileID {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}
	}
	return fileID{uint64(stat.Dev), stat.Ino}
}

// viewEntry describes a path and everything below it.
type viewEntry struct {
	path           string
	visible        bool
	sources        []string // paths outside of the sandbox; the first that has a file counts
	reason         string   // the reason why the path is not visible
	differsOutside bool     // outside, another file is at the path
	traversable    bool     // links in a hidden folder work, because Landlock checks only a path's target
}

// The reasons why a path is not visible.
const (
	whyHidden = "it is kept from commands: a credential, or named by policy.deny_read"
	whyKernel = "the kernel's folders and the machine's sockets are not shown"
	whyOthers = "it belongs to the machine, and commands don't see it"
)

// HiddenError reports a path invisible to commands.
type HiddenError struct{ Reason string }

func (e *HiddenError) Error() string { return "not shown: " + e.Reason }

// Unconfined returns the view of unconfined commands.
func (f Folders) Unconfined() *View {
	v := newView()
	v.hideKernelFolders()
	for _, folder := range f.sharedWritable() {
		if v.entryFor(folder).reason != "" {
			v.add(viewEntry{path: folder, visible: true, sources: []string{folder}})
		}
	}
	return v.sortEntries()
}

// View returns the view with namespaces.
func (p *Plan) View() *View {
	v := newView()
	for _, m := range p.Mounts() {
		entry := viewEntry{path: m.Path, visible: true, sources: []string{m.Source}}
		switch {
		case m.Kind == stage.Hidden || m.Kind == stage.Removed:
			entry = viewEntry{path: m.Path, reason: whyHidden}
		case m.Kind == stage.Pinned:
			continue
		case p.folders.Overlay != "" && m.Path == p.workspace:
			entry.sources, entry.differsOutside = []string{p.folders.Tree}, true
		case p.secondPath != "" && pathname.IsInAny(m.Path, p.secondPath):
			entry.differsOutside = true
		case m.Kind == stage.Overlay:
			entry.sources = nil
			for _, changes := range slices.Concat([]string{m.Source}, m.Below, m.Frozen) {
				entry.sources = append(entry.sources, filepath.Join(changes, "upper"))
			}
			entry.sources = append(entry.sources, m.Path)
		}
		v.add(entry)
	}
	return v.hideSecrets(p)
}

// LandlockView returns the view without namespaces. Paths are the same inside and outside.
func (p *Plan) LandlockView() *View {
	v := newView()
	for _, path := range []string{"/tmp", "/var/tmp"} {
		v.add(viewEntry{path: path, reason: whyOthers, traversable: true})
	}
	for _, path := range p.unreadableByLandlock() {
		v.add(viewEntry{path: path, reason: whyHidden})
	}
	for _, path := range slices.Concat(p.readable, p.caches, p.homeInPrivateFolder(), []string{p.workspace}, p.writable, p.folders.privateWritable()) {
		for _, real := range (Layers{}).resolveIfExists(path) {
			v.add(viewEntry{path: real, visible: true, sources: []string{real}})
		}
	}
	return v.hideSecrets(p)
}

func newView() *View {
	return &View{entries: []viewEntry{{path: "/", visible: true, sources: []string{"/"}}}, secrets: map[fileID]bool{}}
}

// hideSecrets hides the plan's secrets, even missing ones, and existing ones under any name. It then
// shows the replacement files.
func (v *View) hideSecrets(p *Plan) *View {
	for _, path := range p.secrets.Paths() {
		v.add(viewEntry{path: path, reason: whyHidden})
	}
	for _, path := range p.hidden {
		if info, _, err := p.layers.lstat(path); err == nil {
			v.secrets[idOf(info)] = true
		}
	}
	for path, copied := range p.replacements {
		v.add(viewEntry{path: path, visible: true, sources: []string{copied}})
	}
	v.hideKernelFolders()
	return v.sortEntries()
}

func (v *View) hideKernelFolders() {
	for _, path := range []string{"/proc", "/sys", "/dev", "/run", "/var/run"} {
		v.add(viewEntry{path: path, reason: whyKernel})
	}
}

func (v *View) sortEntries() *View {
	slices.SortFunc(v.entries, func(a, b viewEntry) int { return strings.Compare(b.path, a.path) })
	return v
}

func (v *View) add(e viewEntry) {
	if i := slices.IndexFunc(v.entries, func(known viewEntry) bool { return known.path == e.path }); i >= 0 {
		v.entries[i] = e
		return
	}
	v.entries = append(v.entries, e)
}

// entryFor returns the deepest entry that contains path.
func (v *View) entryFor(path string) viewEntry {
	var deepest viewEntry
	for _, e := range v.entries {
		if pathname.IsInAny(path, e.path) && len(e.path) > len(deepest.path) {
			deepest = e
		}
	}
	return deepest
}

// Locate returns where a command's absolute path is outside of the sandbox: inside is relative to root.
// Open root as an os.Root, so links cannot lead elsewhere. The error is the end of a sentence about the
// path.
func (v *View) Locate(path string) (root, inside string, err error) {
	path = filepath.Clean(path)
	for range 8 { // links may lead from one entry to another
		entry := v.entryFor(path)
		if entry.traversable {
			if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
				path = real
				continue
			}
		}
		if !entry.visible {
			return "", "", &HiddenError{entry.reason}
		}
		inside, err := filepath.Rel(entry.path, path)
		if err != nil {
			return "", "", err
		}
		if entry.path != "/" {
			source := entry.source(inside)
			info, err := os.Lstat(source)
			isFile := inside == "." && err == nil && info.Mode().IsRegular()
			if isFile { // it cannot be a root
				return filepath.Dir(source), filepath.Base(source), nil
			}
			return source, inside, nil
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return "", "", err
		}
		if real == path {
			return "/", inside, nil
		}
		path = real
	}
	return "", "", &HiddenError{"too many links"}
}

// source returns the source that contains inside. Changes come before the unchanged folder, which is
// last. A folder in both is read from the last source, because changes do not list all of its files.
func (e viewEntry) source(inside string) string {
	last := e.sources[len(e.sources)-1]
	for _, source := range e.sources[:len(e.sources)-1] {
		info, err := os.Lstat(filepath.Join(source, inside))
		if err != nil {
			continue
		}
		isFolderInBoth := info.IsDir() && isFolder(filepath.Join(last, inside))
		if !isFolderInBoth {
			return source // also for overlayfs's device that marks a removed file
		}
	}
	return last
}

// Hides returns why commands do not see the file at an outside path without links. It returns "" if they
// see it, or if it is in their private folders.
func (v *View) Hides(real string) (reason string) {
	if v == nil {
		return ""
	}
	for _, entry := range v.entries {
		if entry.visible && slices.ContainsFunc(entry.sources, func(source string) bool { return source != entry.path && pathname.IsInAny(real, source) }) {
			return ""
		}
	}
	return v.entryFor(real).hiddenReason()
}

// HidesFile returns why commands do not see an open file, or "". It checks the file's current path and
// identity, because the path may have changed since an earlier check.
func (v *View) HidesFile(file *os.File) (reason string) {
	if v == nil {
		return ""
	}
	if path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", file.Fd())); err == nil { // a system without /proc hides nothing
		if reason := v.Hides(path); reason != "" {
			return reason
		}
	}
	info, err := file.Stat()
	if err != nil {
		return ""
	}
	return v.HidesInfo(info)
}

// HidesInfo returns why commands do not see the file with this stat data, or "".
func (v *View) HidesInfo(info fs.FileInfo) (reason string) {
	stat := idOf(info)
	if v.HidesID(stat.device, stat.inode) {
		return whyHidden
	}
	return ""
}

// HidesID reports whether the file or folder with this identity is hidden.
func (v *View) HidesID(device, inode uint64) bool {
	return v != nil && v.secrets[fileID{device, inode}]
}

// hiddenReason returns the reason why commands do not see the file at the entry's real path, or "".
func (e viewEntry) hiddenReason() (reason string) {
	if e.visible && !e.differsOutside && !slices.Contains(e.sources, e.path) {
		return whyOthers
	}
	return e.reason
}

// HiddenBelow lists hidden paths in a folder, relative to it.
func (v *View) HiddenBelow(dir string) []string {
	if v == nil {
		return nil
	}
	var hidden []string
	for _, e := range v.entries {
		if inside, is := pathname.Below(dir, e.path); is && inside != "." && e.hiddenReason() != "" {
			hidden = append(hidden, filepath.ToSlash(inside))
		}
	}
	return hidden
}
