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
	p.addMount(stage.Mount{Kind: stage.Writable, Path: "/tmp", Source: f.inScratch("tmp")})
	for _, mount := range []stage.Mount{
		{Kind: stage.Writable, Path: "/var/tmp", Source: f.inScratch("var-tmp")},
		{Kind: stage.Hidden, Path: "/run"},
		{Kind: stage.Hidden, Path: "/var/run"},
	} {
		if isFolder(mount.Path) {
			p.addMount(mount)
		}
	}
	if p.home != "" && !pathname.IsInAny(p.home, p.writable...) {
		p.addMount(f.privateOverlay(p.home, "home"))
	}
	for _, path := range p.caches {
		p.addMount(f.privateOverlay(path, cacheFolder(path)))
	}
	for _, path := range p.readable {
		p.addSource(stage.Readable, path, path)
	}
	p.addSource(stage.Readable, p.workspace, p.workspace)
	for _, path := range p.writable {
		if f.Overlay == "" || !pathname.IsInAny(path, p.workspace) {
			p.addSource(stage.Writable, path, path)
		}
	}
	if f.Overlay != "" {
		p.addMount(stage.Mount{Kind: stage.Overlay, Path: p.workspace, Source: f.Overlay, Frozen: f.LowerLayers})
	}
	p.mountRestrictions()
	p.mountBorrowed()
	p.mountSecondPath()
	if f.Resolver {
		resolver, err := filepath.EvalSymlinks("/etc/resolv.conf")
		if err == nil && pathname.IsInAny(resolver, privateFolders...) {
			p.addSource(stage.Readable, resolver, resolver)
		}
	}
	p.coverHidden()
	p.mountReplacements()
	p.removeFromOverlays()
	if f.MountedElsewhere {
		p.borrowWorkspace()
	}
	p.pinMountPoints()
	return slices.SortedFunc(maps.Values(p.mounts), func(a, b stage.Mount) int {
		return cmp.Or(cmp.Compare(strings.Count(a.Path, "/"), strings.Count(b.Path, "/")), cmp.Compare(a.Path, b.Path))
	})
}

// borrowWorkspace replaces the mounts in the workspace by the mount of another sandbox. Only the mounts of
// a separate git folder stay.
func (p *Plan) borrowWorkspace() {
	maps.DeleteFunc(p.mounts, func(path string, _ stage.Mount) bool {
		isGit := p.folders.Git != "" && pathname.IsInAny(path, p.gitFolder())
		return pathname.IsInAny(path, p.workspace) && !isGit
	})
	kind := stage.Borrowed
	if p.folders.Mode == WorkspaceWrite {
		kind = stage.BorrowedToWrite
	}
	p.addMount(stage.Mount{Kind: kind, Path: p.workspace})
}

// privateOverlay returns a mount that overlays a folder with private changes, above the changes of earlier
// sandboxes. Changes that are stored inside the folder go to Below: each needs its own overlay, and the
// kernel stacks only a few.
func (f Folders) privateOverlay(path, name string) stage.Mount {
	mount := stage.Mount{Kind: stage.Overlay, Path: path, Source: f.inScratch(name), Optional: true}
	for _, scratch := range f.EarlierScratch {
		changes := filepath.Join(scratch, name)
		switch {
		case !isFolder(changes): // that sandbox changed nothing in the folder
		case pathname.IsInAny(changes, path):
			mount.Below = append(mount.Below, changes)
		default:
			mount.Frozen = append(mount.Frozen, changes)
		}
	}
	return mount
}

func (p *Plan) addMount(m stage.Mount) { p.mounts[m.Path] = m }

// addSource adds a mount of source at path if source exists.
func (p *Plan) addSource(kind stage.MountKind, path, source string) {
	if info, err := os.Stat(source); err == nil {
		p.addMount(stage.Mount{Kind: kind, Path: path, Source: source, File: !info.IsDir()})
	}
}

// mountSecondPath also shows the workspace, with all mounts in it, at SecondPath. It does nothing if SecondPath is
// "" or missing, or if one of both folders is in the other.
func (p *Plan) mountSecondPath() {
	if p.folders.SecondPath == "" {
		return
	}
	second, err := filepath.EvalSymlinks(p.folders.SecondPath)
	if err != nil {
		return
	}
	if pathname.IsInAny(p.workspace, second) || pathname.IsInAny(second, p.workspace) {
		return
	}
	p.secondPath = second
	maps.DeleteFunc(p.mounts, func(path string, _ stage.Mount) bool { return pathname.IsInAny(path, second) })
	for path, m := range maps.Clone(p.mounts) {
		if inside, ok := pathname.Below(p.workspace, path); ok {
			m.Path = filepath.Join(second, inside)
			p.addMount(m)
		}
	}
}

// gitFolder returns the commands' git folder.
func (p *Plan) gitFolder() string { return filepath.Join(p.workspace, ".git") }

// mountRestrictions makes restricted files read-only and shows cleaned copies.
func (p *Plan) mountRestrictions() {
	for _, path := range p.restrictions.ReadOnly {
		p.addSource(stage.Readable, path, path)
	}
	if p.folders.Git != "" {
		kind := stage.Readable
		if p.folders.Mode == WorkspaceWrite && !p.folders.GitReadOnly {
			kind = stage.Writable
		}
		p.addSource(kind, p.gitFolder(), p.folders.Git)
	}
	for _, copies := range []map[string]string{p.userCopies, p.copies} {
		for path, copied := range copies {
			if real, err := filepath.EvalSymlinks(path); err == nil {
				p.addSource(stage.Readable, real, copied)
			}
		}
	}
}

// mountBorrowed shows borrowed folders at their own paths and in the workspace. In the workspace it
// hides their hidden parts.
func (p *Plan) mountBorrowed() {
	for place, folder := range p.borrowed {
		if p.folders.Git == "" { // otherwise Git covers the folder
			p.addSource(stage.Readable, folder, folder)
		}
		p.addSource(stage.Readable, place, folder)
		hidden := slices.Clone(p.hidden)
		for _, name := range p.folders.NotBorrowed {
			hidden = append(hidden, filepath.Join(folder, name))
		}
		for _, path := range hidden {
			inside, isInside := pathname.Below(folder, path)
			if !isInside {
				continue
			}
			if info, err := os.Stat(path); err == nil {
				p.addMount(stage.Mount{Kind: stage.Hidden, Path: filepath.Join(place, inside), File: !info.IsDir()})
			}
		}
	}
}

// coverHidden covers each hidden file and socket that another mount does not already cover.
func (p *Plan) coverHidden() {
	layers := p.layers.withCache()
	for _, path := range slices.Concat(p.hidden, p.sockets) {
		info, err := layers.Stat(path)
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
		mayBeSkipped := path != p.workspace && slices.Contains(p.writable, path) // as Writable allows
		if m.Kind == stage.Removed || mayBeSkipped {
			continue // there may be no mount
		}
		parent, between := p.parentMount(path)
		switch {
		case parent.Kind == stage.Writable:
			p.mountOnThemselves(parent, between)
		case parent.Kind == stage.Overlay && parent.Path == p.workspace:
			for _, dir := range between {
				p.addMount(stage.Mount{Kind: stage.Pinned, Path: dir})
			}
		}
	}
}

// parentMount returns the deepest mount above path, except one of /, and the folders between both. It
// returns the zero Mount if there is none.
func (p *Plan) parentMount(path string) (parent stage.Mount, between []string) {
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		if parent, mounted := p.mounts[dir]; mounted {
			return parent, between
		}
		between = append(between, dir)
	}
	return stage.Mount{}, nil
}

// mountOnThemselves mounts folders inside the writable mount on themselves.
func (p *Plan) mountOnThemselves(writable stage.Mount, folders []string) {
	for _, dir := range folders {
		if rel, isInside := pathname.Below(writable.Path, dir); isInside {
			p.addSource(stage.Writable, dir, filepath.Join(writable.Source, rel))
		}
	}
}

// isCovered reports whether another mount already covers the folder of path.
func (p *Plan) isCovered(path string) bool {
	kernelFolders := []string{"/proc", "/sys", "/dev"} // a sandbox has its own
	if slices.Contains(kernelFolders, path) {
		return true
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		m, mounted := p.mounts[dir]
		switch {
		case mounted:
			isHidden := m.Kind == stage.Hidden || m.Kind == stage.Removed
			showsOtherFolder := m.Kind != stage.Overlay && m.Source != dir
			return isHidden || showsOtherFolder
		case slices.Contains(kernelFolders, dir):
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
