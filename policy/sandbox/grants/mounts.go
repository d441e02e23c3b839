package grants

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/internal/pathname"
	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

// Mounts are those that make the plan true in namespaces, parents first.
func (p *Plan) Mounts() []stage.Mount {
	f := p.folders
	p.put(stage.Mount{Kind: stage.Writable, Path: "/tmp", Source: f.scratch("tmp")})
	for _, own := range []stage.Mount{
		{Kind: stage.Writable, Path: "/var/tmp", Source: f.scratch("var-tmp")},
		{Kind: stage.Hidden, Path: "/run"},
		{Kind: stage.Hidden, Path: "/var/run"},
	} {
		if isFolder(own.Path) {
			p.put(own)
		}
	}
	if p.home != "" && !pathname.Within(p.home, p.writable...) {
		p.put(f.ownChanges(p.home, "home"))
	}
	for _, path := range p.caches {
		p.put(f.ownChanges(path, cacheFolder(path)))
	}
	for _, path := range p.readable {
		p.putSource(stage.Readable, path, path)
	}
	p.putSource(stage.Readable, p.workspace, p.workspace)
	for _, path := range p.writable {
		if f.Overlay == "" || !pathname.Within(path, p.workspace) {
			p.putSource(stage.Writable, path, path)
		}
	}
	if f.Overlay != "" {
		p.put(stage.Mount{Kind: stage.Overlay, Path: p.workspace, Source: f.Overlay, Frozen: f.Frozen})
	}
	p.protect()
	p.lend()
	p.putTwin()
	if resolver, err := filepath.EvalSymlinks("/etc/resolv.conf"); err == nil && f.Resolver && pathname.Within(resolver, replaced...) {
		p.putSource(stage.Readable, resolver, resolver)
	}
	p.hide()
	p.show()
	p.leaveOut()
	if f.Given {
		maps.DeleteFunc(p.mounts, func(path string, _ stage.Mount) bool {
			return pathname.Within(path, p.workspace) && (f.Git == "" || !pathname.Within(path, p.git()))
		})
		kind := stage.Borrowed
		if f.Mode == WorkspaceWrite {
			kind = stage.BorrowedToWrite
		}
		p.put(stage.Mount{Kind: kind, Path: p.workspace})
	}
	p.holdPlaces()
	return slices.SortedFunc(maps.Values(p.mounts), func(a, b stage.Mount) int {
		return cmp.Or(cmp.Compare(strings.Count(a.Path, "/"), strings.Count(b.Path, "/")), cmp.Compare(a.Path, b.Path))
	})
}

// ownChanges shows a folder with changes that are the sandbox's own, above those of
// earlier sandboxes. These lie right above the folder; but where they lie in it, each
// takes an overlay of its own, of which the kernel puts few upon each other.
func (f Folders) ownChanges(path, name string) stage.Mount {
	m := stage.Mount{Kind: stage.Overlay, Path: path, Source: f.scratch(name), Optional: true}
	for _, scratch := range f.Below {
		changes := filepath.Join(scratch, name)
		switch {
		case !isFolder(changes):
		case pathname.Within(changes, path):
			m.Below = append(m.Below, changes)
		default:
			m.Frozen = append(m.Frozen, changes)
		}
	}
	return m
}

func (p *Plan) put(m stage.Mount) { p.mounts[m.Path] = m }

func (p *Plan) putSource(kind stage.MountKind, path, source string) {
	if info, err := os.Stat(source); err == nil {
		p.put(stage.Mount{Kind: kind, Path: path, Source: source, File: !info.IsDir()})
	}
}

// putTwin shows the workspace and what is read-only in it at another place too,
// and nothing of what stands there.
func (p *Plan) putTwin() {
	twin, err := filepath.EvalSymlinks(p.folders.Twin)
	if err != nil || p.folders.Twin == "" || pathname.Within(p.workspace, twin) || pathname.Within(twin, p.workspace) {
		return
	}
	p.twin = twin
	maps.DeleteFunc(p.mounts, func(path string, _ stage.Mount) bool { return pathname.Within(path, twin) })
	for path, m := range maps.Clone(p.mounts) {
		if rel, is := pathname.Below(p.workspace, path); is {
			m.Path = filepath.Join(twin, rel)
			p.put(m)
		}
	}
}

// git is where commands find their git folder.
func (p *Plan) git() string { return filepath.Join(p.workspace, ".git") }

// protect makes read-only what is held, and shows the copies of what is cleaned.
func (p *Plan) protect() {
	for _, path := range p.held.ReadOnly {
		p.putSource(stage.Readable, path, path)
	}
	if p.folders.Git != "" {
		kind := stage.Readable
		if p.folders.Mode == WorkspaceWrite && !p.folders.GitReadOnly {
			kind = stage.Writable
		}
		p.putSource(kind, p.git(), p.folders.Git)
	}
	for _, copies := range []map[string]string{p.userCopies, p.copies} {
		for path, copied := range copies {
			if real, err := filepath.EvalSymlinks(path); err == nil {
				p.putSource(stage.Readable, real, copied)
			}
		}
	}
}

// lend shows what is lent, where it is and in the workspace, there without what is
// not to be lent and what is hidden.
func (p *Plan) lend() {
	for place, folder := range p.lent {
		if p.folders.Git == "" { // else another git folder is where this one is
			p.putSource(stage.Readable, folder, folder)
		}
		p.putSource(stage.Readable, place, folder)
		without := slices.Clone(p.hidden)
		for _, name := range p.folders.Unlent {
			without = append(without, filepath.Join(folder, name))
		}
		for _, path := range without {
			rel, is := pathname.Below(folder, path)
			if info, err := os.Stat(path); is && err == nil {
				p.put(stage.Mount{Kind: stage.Hidden, Path: filepath.Join(place, rel), File: !info.IsDir()})
			}
		}
	}
}

// hide covers what commands must not read, where it would be seen.
func (p *Plan) hide() {
	for _, path := range slices.Concat(p.hidden, p.sockets) {
		info, _, err := p.layers.stat(path)
		if err != nil || p.unseen(path) {
			continue
		}
		m := stage.Mount{Kind: stage.Hidden, Path: path, File: !info.IsDir()}
		if p.folders.Absent && pathname.Within(path, p.workspace) {
			m.Kind = stage.Removed
		}
		p.put(m)
	}
}

// holdPlaces keeps commands from moving the workspace and what is shown or covered
// in a folder that they may write to: each folder above is mounted on itself, and
// what is mounted can't be renamed. A later sandbox would else look in vain.
func (p *Plan) holdPlaces() {
	for path, m := range maps.Clone(p.mounts) {
		if m.Kind == stage.Removed || slices.Contains(p.writable, path) && path != p.workspace {
			continue // nothing is there, or it is passed over where it is not there
		}
		var between []string
		for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
			top, mounted := p.mounts[dir]
			if !mounted {
				between = append(between, dir)
				continue
			}
			switch {
			case top.Kind == stage.Writable:
				p.putBelow(top, between)
			case top.Kind == stage.Overlay && top.Path == p.workspace:
				for _, dir := range between {
					p.put(stage.Mount{Kind: stage.Pinned, Path: dir})
				}
			}
			break
		}
	}
}

// putBelow mounts folders of a writable one on themselves.
func (p *Plan) putBelow(top stage.Mount, folders []string) {
	for _, dir := range folders {
		if rel, err := filepath.Rel(top.Path, dir); err == nil {
			p.putSource(stage.Writable, dir, filepath.Join(top.Source, rel))
		}
	}
}

// unseen reports whether commands see nothing of path, since something else covers the
// folder that it is in.
func (p *Plan) unseen(path string) bool {
	machine := []string{"/proc", "/sys", "/dev"} // a sandbox has its own
	if slices.Contains(machine, path) {
		return true
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		m, mounted := p.mounts[dir]
		switch {
		case mounted && (m.Kind == stage.Hidden || m.Kind == stage.Removed || m.Source != dir && m.Kind != stage.Overlay):
			return true
		case mounted:
			return false
		case slices.Contains(machine, dir):
			return true
		case dir == "/":
			return false
		}
	}
}

// WritableAmong are the paths that Landlock lets commands write to in namespaces
// with such mounts. Which of them are read-only, the mounts say.
func WritableAmong(mounts []stage.Mount) []string {
	paths := []string{"/tmp", "/var/tmp", "/dev/shm", "/dev/pts"}
	for _, m := range mounts {
		if m.Kind == stage.Writable || m.Kind == stage.Overlay || m.Kind == stage.BorrowedToWrite {
			paths = append(paths, m.Path)
		}
	}
	return paths
}
