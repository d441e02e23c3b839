package grants

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/agent-ci/agent-ci/internal/pathname"
	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

// View is what commands see of the file system, for who reads files outside of
// the sandbox on their behalf. It is made when the sandbox is, and knows no
// credential that appears later. A nil View hides nothing.
type View struct {
	entries []viewed        // of a path the deepest counts
	secrets map[fileID]bool // files and folders that are not shown, under whatever name
}

// fileID is what a file is, whatever its name.
type fileID struct{ device, inode uint64 }

func idOf(info fs.FileInfo) fileID {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}
	}
	return fileID{uint64(stat.Dev), stat.Ino}
}

// viewed says what commands see at a path and below.
type viewed struct {
	path     string
	shown    bool
	sources  []string // where it lies outside, the first that has a file counts
	why      string   // it is not shown
	overlaid bool     // it is shown as it was opened inside: by its path another lies there
	walked   bool     // though it is not shown, links in it lead on to what is: Landlock judges where a path ends
}

// Why a path is not shown.
const (
	whyHidden = "it is kept from commands: a credential, or named by policy.deny_read"
	whyKernel = "the kernel's folders and the machine's sockets are not shown"
	whyOthers = "it belongs to the machine, and commands don't see it"
)

// NotShownError says that commands don't see a path.
type NotShownError struct{ Why string }

func (e *NotShownError) Error() string { return "not shown: " + e.Why }

// Unconfined gives the view of commands that nothing confines.
func (f Folders) Unconfined() *View {
	v := newView()
	v.addKernel()
	for _, folder := range f.shared() {
		if v.at(folder).why != "" {
			v.add(viewed{path: folder, shown: true, sources: []string{folder}})
		}
	}
	return v.sorted()
}

// View gives the view of commands in namespaces.
func (p *Plan) View() *View {
	v := newView()
	for _, m := range p.Mounts() {
		e := viewed{path: m.Path, shown: true, sources: []string{m.Source}}
		switch {
		case m.Kind == stage.Hidden || m.Kind == stage.Removed:
			e = viewed{path: m.Path, why: whyHidden}
		case m.Kind == stage.Pinned:
			continue
		case p.folders.Overlay != "" && m.Path == p.workspace:
			e.sources, e.overlaid = []string{p.folders.Tree}, true
		case p.twin != "" && pathname.Within(m.Path, p.twin):
			e.overlaid = true
		case m.Kind == stage.Overlay:
			e.sources = nil
			for _, changes := range slices.Concat([]string{m.Source}, m.Below, m.Frozen) {
				e.sources = append(e.sources, filepath.Join(changes, "upper"))
			}
			e.sources = append(e.sources, m.Path)
		}
		v.add(e)
	}
	return v.withSecrets(p)
}

// LandlockView gives the view where there are no namespaces, and paths are what
// they are outside.
func (p *Plan) LandlockView() *View {
	v := newView()
	for _, path := range []string{"/tmp", "/var/tmp"} {
		v.add(viewed{path: path, why: whyOthers, walked: true})
	}
	for _, path := range p.unreadable() {
		v.add(viewed{path: path, why: whyHidden})
	}
	for _, path := range slices.Concat(p.readable, p.caches, p.homeInReplaced(), []string{p.workspace}, p.writable, p.folders.ownFolders()) {
		for _, real := range existing(path) {
			v.add(viewed{path: real, shown: true, sources: []string{real}})
		}
	}
	return v.withSecrets(p)
}

func newView() *View {
	return &View{entries: []viewed{{path: "/", shown: true, sources: []string{"/"}}}, secrets: map[fileID]bool{}}
}

// withSecrets hides what is kept from commands, there or not, and what is there
// under any name.
func (v *View) withSecrets(p *Plan) *View {
	for _, path := range p.secrets.Paths() {
		v.add(viewed{path: path, why: whyHidden})
	}
	for _, path := range p.hidden {
		if info, _, err := p.layers.lstat(path); err == nil {
			v.secrets[idOf(info)] = true
		}
	}
	for path, copied := range p.shown {
		v.add(viewed{path: path, shown: true, sources: []string{copied}})
	}
	v.addKernel()
	return v.sorted()
}

func (v *View) addKernel() {
	for _, path := range []string{"/proc", "/sys", "/dev", "/run", "/var/run"} {
		v.add(viewed{path: path, why: whyKernel})
	}
}

func (v *View) sorted() *View {
	slices.SortFunc(v.entries, func(a, b viewed) int { return strings.Compare(b.path, a.path) })
	return v
}

func (v *View) add(e viewed) {
	if i := slices.IndexFunc(v.entries, func(there viewed) bool { return there.path == e.path }); i >= 0 {
		v.entries[i] = e
		return
	}
	v.entries = append(v.entries, e)
}

// at is the deepest entry that path lies in.
func (v *View) at(path string) viewed {
	var deepest viewed
	for _, e := range v.entries {
		if pathname.Within(path, e.path) && len(e.path) > len(deepest.path) {
			deepest = e
		}
	}
	return deepest
}

// Locate finds where what commands see at an absolute path lies: below root,
// which the caller opens as an os.Root, so that a link there leads nowhere else. The
// error is why there is nothing to see, for a sentence about the path.
func (v *View) Locate(path string) (root, inside string, err error) {
	path = filepath.Clean(path)
	for range 8 { // links may lead from one entry to another
		e := v.at(path)
		if e.walked {
			if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
				path = real
				continue
			}
		}
		if !e.shown {
			return "", "", &NotShownError{e.why}
		}
		inside, err := filepath.Rel(e.path, path)
		if err != nil {
			return "", "", err
		}
		if e.path != "/" {
			source := e.source(inside)
			if info, err := os.Lstat(source); inside == "." && err == nil && info.Mode().IsRegular() { // one file, which is no root
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
	return "", "", &NotShownError{"too many links"}
}

// source is the folder that has inside: a change of the user's folder goes
// before what it changes, but only the user's own folders list all.
func (e viewed) source(inside string) string {
	last := e.sources[len(e.sources)-1]
	for _, source := range e.sources[:len(e.sources)-1] {
		info, err := os.Lstat(filepath.Join(source, inside))
		if err == nil && !(info.IsDir() && isFolder(filepath.Join(last, inside))) {
			return source // also where it has a device, by which overlayfs says that the file is gone
		}
	}
	return last
}

// Hides says why a file is not shown, by where it really lies outside; empty
// when it is, or lies in a folder that is commands' own.
func (v *View) Hides(real string) (why string) {
	if v == nil {
		return ""
	}
	for _, e := range v.entries {
		if e.shown && slices.ContainsFunc(e.sources, func(source string) bool { return source != e.path && pathname.Within(real, source) }) {
			return ""
		}
	}
	return v.at(real).hidden()
}

// HidesFile says why an open file or folder is not shown, by where it really
// lies and by what it is: a path that was looked at before may have come to lead
// elsewhere. Empty when it is shown.
func (v *View) HidesFile(file *os.File) (why string) {
	if v == nil {
		return ""
	}
	if path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", file.Fd())); err == nil { // where there is no /proc, nothing is hidden
		if why := v.Hides(path); why != "" {
			return why
		}
	}
	info, err := file.Stat()
	if err != nil {
		return ""
	}
	return v.HidesInfo(info)
}

// HidesInfo says why what has this stat data is not shown; empty when it is, as
// far as that tells.
func (v *View) HidesInfo(info fs.FileInfo) (why string) {
	stat := idOf(info)
	if v.HidesID(stat.device, stat.inode) {
		return whyHidden
	}
	return ""
}

// HidesID says whether the file or folder of this number is not shown.
func (v *View) HidesID(device, inode uint64) bool {
	return v != nil && v.secrets[fileID{device, inode}]
}

// hidden says why commands don't see what lies at the entry's path outside:
// nothing is shown there, or something else.
func (e viewed) hidden() (why string) {
	if e.shown && !e.overlaid && !slices.Contains(e.sources, e.path) {
		return whyOthers
	}
	return e.why
}

// HiddenBelow lists what is not shown in a folder, by paths relative to it.
func (v *View) HiddenBelow(dir string) []string {
	if v == nil {
		return nil
	}
	var hidden []string
	for _, e := range v.entries {
		if inside, is := pathname.Below(dir, e.path); is && inside != "." && e.hidden() != "" {
			hidden = append(hidden, filepath.ToSlash(inside))
		}
	}
	return hidden
}
