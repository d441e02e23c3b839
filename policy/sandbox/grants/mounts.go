package grants

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/pathname"
	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

// Mounts returns the plan's mounts for namespaces, parents first.
func (p *Plan) Mounts() []stage.Mount {
	f := p.folders
	p.addMount(stage.Mount{Kind: stage.Writable, Path: "/tmp", Source: f.scratch("tmp")})
	for _, own := range []stage.Mount{
		{Kind: stage.Writable, Path: "/var/tmp", Source: f.scratch("var-tmp")},
		{Kind: stage.Hidden, Path: "/run"},
		{Kind: stage.Hidden, Path: "/var/run"},
	} {
		if isFolder(own.Path) {
			p.addMount(own)
		}
	}
	if p.home != "" && !pathname.IsInAny(p.home, p.writable...) {
		p.addMount(f.ownChanges(p.home, "home"))
	}
	for _, path := range p.caches {
		p.addMount(f.ownChanges(path, cacheFolder(path)))
	}
	for _, path := range p.readable {
		p.putSource(stage.Readable, path, path)
	}
	p.putSource(stage.Readable, p.workspace, p.workspace)
	for _, path := range p.writable {
		if f.Overlay == "" || !pathname.IsInAny(path, p.workspace) {
			p.putSource(stage.Writable, path, path)
		}
	}
	if f.Overlay != "" {
		p.addMount(stage.Mount{Kind: stage.Overlay, Path: p.workspace, Source: f.Overlay, Frozen: f.LowerLayers})
	}
	p.mountRestrictions()
	p.mountBorrowed()
	p.mountSecondPath()
	if resolver, err := filepath.EvalSymlinks("/etc/resolv.conf"); err == nil && f.Resolver && pathname.IsInAny(resolver, privateFolders...) {
		p.putSource(stage.Readable, resolver, resolver)
	}
	p.coverHidden()
	p.mountReplacements()
	p.removeFromOverlays()
	if f.MountedElsewhere {
		maps.DeleteFunc(p.mounts, func(path string, _ stage.Mount) bool {
			return pathname.IsInAny(path, p.workspace) && (f.Git == "" || !pathname.IsInAny(path, p.git()))
		})
		kind := stage.Borrowed
		if f.Mode == WorkspaceWrite {
			kind = stage.BorrowedToWrite
		}
		p.addMount(stage.Mount{Kind: kind, Path: p.workspace})
	}
	p.pinMountPoints()
	return slices.SortedFunc(maps.Values(p.mounts), func(a, b stage.Mount) int {
		return cmp.Or(cmp.Compare(strings.Count(a.Path, "/"), strings.Count(b.Path, "/")), cmp.Compare(a.Path, b.Path))
	})
}

// ownChanges returns a mount that overlays a folder with private changes, above the changes of earlier
// sandboxes. Changes that are stored inside the folder go to Below: each needs its own overlay, and the
// kernel stacks only a few.
func (f Folders) ownChanges(path, name string) stage.Mount {
	m := stage.Mount{Kind: stage.Overlay, Path: path, Source: f.scratch(name), Optional: true}
	for _, scratch := range f.EarlierScratch {
		changes := filepath.Join(scratch, name)
		switch {
		case !isFolder(changes):
		case pathname.IsInAny(changes, path):
			m.Below = append(m.Below, changes)
		default:
			m.Frozen = append(m.Frozen, changes)
		}
	}
	return m
}

func (p *Plan) addMount(m stage.Mount) { p.mounts[m.Path] = m }

// putSource adds a mount of source at path if source exists.
func (p *Plan) putSource(kind stage.MountKind, path, source string) {
	if info, err := os.Stat(source); err == nil {
		p.addMount(stage.Mount{Kind: kind, Path: path, Source: source, File: !info.IsDir()})
	}
}

// mountSecondPath also shows the workspace, with all mounts in it, at SecondPath.
func (p *Plan) mountSecondPath() {
	second, err := filepath.EvalSymlinks(p.folders.SecondPath)
	if err != nil || p.folders.SecondPath == "" || pathname.IsInAny(p.workspace, second) || pathname.IsInAny(second, p.workspace) {
		return
	}
	p.secondPath = second
	maps.DeleteFunc(p.mounts, func(path string, _ stage.Mount) bool { return pathname.IsInAny(path, second) })
	for path, m := range maps.Clone(p.mounts) {
		if rel, is := pathname.Below(p.workspace, path); is {
			m.Path = filepath.Join(second, rel)
			p.addMount(m)
		}
	}
}

// git returns the commands' git folder.
func (p *Plan) git() string { return filepath.Join(p.workspace, ".git") }

// mountRestrictions makes restricted files read-only and shows cleaned copies.
func (p *Plan) mountRestrictions() {
	for _, path := range p.restrictions.ReadOnly {
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

// mountBorrowed shows borrowed folders at their own paths and in the workspace. In the workspace it
// hides their hidden parts.
func (p *Plan) mountBorrowed() {
	for place, folder := range p.borrowed {
		if p.folders.Git == "" { // otherwise Git covers the folder
			p.putSource(stage.Readable, folder, folder)
		}
		p.putSource(stage.Readable, place, folder)
		without := slices.Clone(p.hidden)
		for _, name := range p.folders.NotBorrowed {
			without = append(without, filepath.Join(folder, name))
		}
		for _, path := range without {
			rel, is := pathname.Below(folder, path)
			if info, err := os.Stat(path); is && err == nil {
				p.addMount(stage.Mount{Kind: stage.Hidden, Path: filepath.Join(place, rel), File: !info.IsDir()})
			}
		}
	}
}

// coverHidden covers each hidden file and socket that another mount does not already cover.
func (p *Plan) coverHidden() {
	for _, path := range slices.Concat(p.hidden, p.sockets) {
		info, _, err := p.layers.stat(path)
		if err != nil || p.isCovered(path) {
			continue
		}
		m := stage.Mount{Kind: stage.Hidden, Path: path, File: !info.IsDir()}
		if p.folders.RemoveHidden && pathname.IsInAny(path, p.workspace) {
			m.Kind = stage.Removed
		}
		p.addMount(m)
	}
}

// pinMountPoints prevents commands from moving the workspace and mounts in writable folders: it mounts
// each folder above on itself, because mounts cannot be renamed. A later sandbox would otherwise
// miss them.
func (p *Plan) pinMountPoints() {
	for path, m := range maps.Clone(p.mounts) {
		if m.Kind == stage.Removed || slices.Contains(p.writable, path) && path != p.workspace {
			continue // no mount is made there, or Writable may skip it
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
					p.addMount(stage.Mount{Kind: stage.Pinned, Path: dir})
				}
			}
			break
		}
	}
}

// putBelow mounts folders inside the writable mount top on themselves.
func (p *Plan) putBelow(top stage.Mount, folders []string) {
	for _, dir := range folders {
		if rel, err := filepath.Rel(top.Path, dir); err == nil {
			p.putSource(stage.Writable, dir, filepath.Join(top.Source, rel))
		}
	}
}

// isCovered reports whether another mount already covers the folder of path.
func (p *Plan) isCovered(path string) bool {
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

// WritableAmong returns the paths that Landlock makes writable for the given mounts. Read-only mounts
// inside them stay read-only.
func WritableAmong(mounts []stage.Mount) []string {
	paths := []string{"/tmp", "/var/tmp", "/dev/shm", "/dev/pts"}
	for _, m := range mounts {
		if m.Kind == stage.Writable || m.Kind == stage.Overlay || m.Kind == stage.BorrowedToWrite {
			paths = append(paths, m.Path)
		}
	}
	return paths
}
