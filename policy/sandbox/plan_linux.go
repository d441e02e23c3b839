package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

// replaced are the folders that commands have of their own, with nothing in
// them that is not put there. The stage makes those of the kernel.
var replaced = []string{"/tmp", "/var/tmp", "/run", "/var/run", "/dev", "/proc"}

// plan is what commands see of the file system.
type plan struct {
	options   Options
	workspace string   // links resolved, as everything below
	writable  []string // with the workspace
	readable  []string
	all       []credential
	secrets   *Secrets
	hidden    []string // what is there of the credentials and denied paths
	sockets   []string
	lent      map[string]string
	git       gitState // of the workspace
	userGit   gitState
	home      string
	mounts    map[string]stage.Mount
}

// newPlan looks at the file system as it is now.
func newPlan(o Options) (*plan, error) {
	p := &plan{options: o, mounts: make(map[string]stage.Mount)}
	if err := p.resolveGrants(); err != nil {
		return nil, err
	}
	var err error
	if p.git, err = readGitState(p.workspace, filepath.Join(o.Scratch, "git")); err != nil {
		return nil, err
	}
	if err := p.mustHoldGit(); err != nil {
		return nil, err
	}
	if p.userGit, err = readUserGitState(o.userGitFiles(), filepath.Join(o.Scratch, "git")); err != nil {
		return nil, err
	}
	p.all = inLocked(slices.Concat(o.credentials(), credentialsBy("", p.git.secretFiles), credentialsBy("", p.userGit.secretFiles)))
	if p.secrets = o.Secrets; p.secrets == nil {
		p.secrets = o.findSecrets(p.all)
	}
	p.hidden = p.secrets.hides(p.all)
	p.lent = p.resolveLent()
	for _, path := range hostSockets() {
		p.sockets = append(p.sockets, existingForms(path)...)
	}
	if home, err := filepath.EvalSymlinks(o.Home); err == nil && o.Home != "" && home != "/" && !slices.Contains(replaced, home) && !within(home, p.hidden) {
		p.home = home
	}
	return p, nil
}

func (p *plan) resolveGrants() (err error) {
	o := p.options
	if p.workspace, err = filepath.EvalSymlinks(o.Workspace); err != nil {
		return fmt.Errorf("find the workspace: %w", err)
	}
	if o.Mode == WorkspaceWrite {
		p.writable = append(p.writable, p.workspace)
		for _, path := range o.Writable {
			real, err := p.resolveGrant(path)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			p.writable = append(p.writable, real)
		}
	}
	self, err := os.Executable() // the supervisor is this program, and commands know it as apply_patch
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	for _, path := range append([]string{self}, o.Readable...) {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			p.readable = append(p.readable, real)
		}
	}
	return nil
}

// resolveGrant follows the links of a path that commands may write to. One in
// the workspace was perhaps made by them.
func (p *plan) resolveGrant(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	if within(path, []string{p.options.Workspace, p.workspace}) && !within(real, []string{p.workspace}) {
		return "", fmt.Errorf("the writable path %s leads out of the workspace, to %s", path, real)
	}
	if real == "/" {
		return "", fmt.Errorf("the writable path %s is the whole file system; use the mode %s instead", path, DangerFullAccess)
	}
	return real, nil
}

// resolveLent follows the links of what is lent, and leaves out what is kept from
// commands.
func (p *plan) resolveLent() map[string]string {
	lent := make(map[string]string)
	for place, folder := range p.options.Lent {
		place, errPlace := filepath.EvalSymlinks(place)
		folder, err := filepath.EvalSymlinks(folder)
		if errors.Join(errPlace, err) == nil && within(place, []string{p.workspace}) && !p.keeps(folder) {
			lent[place] = folder
		}
	}
	return lent
}

// keeps says whether a folder to lend lies in one that is kept from commands. A
// twin may lie in one and is shown, and a workspace among folders of its run.
func (p *plan) keeps(folder string) bool {
	above, twin := p.hiddenAbove(folder), []string{p.options.Twin}
	inTwin := within(folder, twin) && !within(above, twin)
	return above != "" && above != p.hiddenAbove(p.workspace) && !inTwin
}

// hiddenAbove is the deepest that is hidden and holds path; empty for none.
func (p *plan) hiddenAbove(path string) (deepest string) {
	for _, hidden := range p.hidden {
		if within(path, []string{hidden}) && len(hidden) > len(deepest) {
			deepest = hidden
		}
	}
	return deepest
}

// existingForms is a path as it is written and with its links resolved; nothing
// when nothing is there.
func existingForms(path string) []string {
	if _, err := os.Lstat(path); err != nil {
		return nil
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil // a link to nothing
	}
	return []string{real}
}

// namespaceMounts are the mounts that make the plan true, parents first.
func (p *plan) namespaceMounts() []stage.Mount {
	scratch := p.options.Scratch
	p.put(stage.Mount{Kind: stage.Writable, Path: "/tmp", Source: filepath.Join(scratch, "tmp")})
	for _, own := range []stage.Mount{
		{Kind: stage.Writable, Path: "/var/tmp", Source: filepath.Join(scratch, "var-tmp")},
		{Kind: stage.Hidden, Path: "/run"},
		{Kind: stage.Hidden, Path: "/var/run"},
	} {
		if isFolder(own.Path) {
			p.put(own)
		}
	}
	if p.home != "" && !within(p.home, p.writable) {
		p.put(stage.Mount{Kind: stage.Overlay, Path: p.home, Source: filepath.Join(scratch, "home"), Below: p.homesBelow(), Optional: true})
	}
	for _, path := range p.readable {
		p.putSource(stage.Readable, path, path)
	}
	p.putSource(stage.Readable, p.workspace, p.workspace)
	for _, path := range p.writable {
		p.putSource(stage.Writable, path, path)
	}
	p.protectGit()
	p.lend()
	p.putTwin()
	if resolver, err := filepath.EvalSymlinks("/etc/resolv.conf"); err == nil && p.options.Network == NetworkFull && within(resolver, replaced) {
		p.putSource(stage.Readable, resolver, resolver)
	}
	p.hide()
	p.holdPlaces()
	return slices.SortedFunc(mapValues(p.mounts), func(a, b stage.Mount) int {
		return cmp.Or(cmp.Compare(strings.Count(a.Path, "/"), strings.Count(b.Path, "/")), cmp.Compare(a.Path, b.Path))
	})
}

// homesBelow are the changes of the user's folder by earlier sandboxes.
func (p *plan) homesBelow() []string {
	var all []string
	for _, scratch := range p.options.Below {
		if changes := filepath.Join(scratch, "home"); isFolder(changes) {
			all = append(all, changes)
		}
	}
	return all
}

func mapValues(m map[string]stage.Mount) func(func(stage.Mount) bool) {
	return func(yield func(stage.Mount) bool) {
		for _, mount := range m {
			if !yield(mount) {
				return
			}
		}
	}
}

func (p *plan) put(m stage.Mount) { p.mounts[m.Path] = m }

func (p *plan) putSource(kind stage.MountKind, path, source string) {
	if info, err := os.Stat(source); err == nil {
		p.put(stage.Mount{Kind: kind, Path: path, Source: source, File: !info.IsDir()})
	}
}

// putTwin shows the workspace and what is read-only in it at another place too,
// and nothing of what stands there.
func (p *plan) putTwin() {
	twin, err := filepath.EvalSymlinks(p.options.Twin)
	if err != nil || p.options.Twin == "" || within(p.workspace, []string{twin}) || within(twin, []string{p.workspace}) {
		return
	}
	maps.DeleteFunc(p.mounts, func(path string, _ stage.Mount) bool { return within(path, []string{twin}) })
	for path, m := range maps.Clone(p.mounts) {
		if rel, err := filepath.Rel(p.workspace, path); err == nil && filepath.IsLocal(rel) {
			m.Path = filepath.Join(twin, rel)
			p.put(m)
		}
	}
}

func (p *plan) protectGit() {
	for _, dir := range p.git.folders {
		p.putSource(stage.Readable, dir, dir)
	}
	for _, cleaned := range []map[string]string{p.userGit.cleaned, p.git.cleaned} {
		for path, copied := range cleaned {
			if real, err := filepath.EvalSymlinks(path); err == nil {
				p.putSource(stage.Readable, real, copied)
			}
		}
	}
}

// lend shows what is lent, where it is and in the workspace, but for what hides in
// it. The folders that objects are borrowed from are all lent: a list of them would
// lead from the workspace to somewhere else.
func (p *plan) lend() {
	for place, folder := range p.lent {
		p.putSource(stage.Readable, folder, folder)
		p.putSource(stage.Readable, place, folder)
		for _, path := range append([]string{filepath.Join(folder, "info", "alternates")}, p.hidden...) {
			rel, err := filepath.Rel(folder, path)
			if info, missing := os.Stat(path); err == nil && missing == nil && filepath.IsLocal(rel) {
				p.put(stage.Mount{Kind: stage.Hidden, Path: filepath.Join(place, rel), File: !info.IsDir()})
			}
		}
	}
}

// hide covers what commands must not read, where it would be seen.
func (p *plan) hide() {
	for _, path := range slices.Concat(p.hidden, p.sockets) {
		info, err := os.Stat(path)
		if err != nil || p.unseen(path) || within(path, []string{"/proc", "/sys", "/dev"}) {
			continue
		}
		p.put(stage.Mount{Kind: stage.Hidden, Path: path, File: !info.IsDir()})
	}
}

// holdPlaces keeps commands from moving the workspace and what is shown or covered
// in a folder that they may write to: each folder above is mounted on itself, and
// what is mounted can't be renamed. A later sandbox would else look in vain.
func (p *plan) holdPlaces() {
	for path := range maps.Clone(p.mounts) {
		if slices.Contains(p.writable, path) && path != p.workspace {
			continue // it is passed over where it is not there
		}
		var between []string
		for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
			top, mounted := p.mounts[dir]
			if !mounted {
				between = append(between, dir)
				continue
			}
			if top.Kind == stage.Writable {
				p.putBelow(top, between)
			}
			break
		}
	}
}

// putBelow mounts folders of a writable one on themselves.
func (p *plan) putBelow(top stage.Mount, folders []string) {
	for _, dir := range folders {
		if rel, err := filepath.Rel(top.Path, dir); err == nil {
			p.putSource(stage.Writable, dir, filepath.Join(top.Source, rel))
		}
	}
}

// unseen says whether path lies in something that shows nothing of it.
func (p *plan) unseen(path string) bool {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		m, mounted := p.mounts[dir]
		switch {
		case mounted && (m.Kind == stage.Hidden || m.Source != dir && m.Kind != stage.Overlay):
			return true
		case mounted:
			return false
		case dir == "/":
			return false
		}
	}
}

// writableInside are the paths that Landlock lets commands write to in the
// namespaces. Which of them are read-only, the mounts say.
func (p *plan) writableInside(mounts []stage.Mount) []string {
	paths := []string{"/tmp", "/var/tmp", "/dev/shm", "/dev/pts"}
	for _, m := range mounts {
		if m.Kind == stage.Writable || m.Kind == stage.Overlay || m.Kind == stage.Empty {
			paths = append(paths, m.Path)
		}
	}
	return paths
}
