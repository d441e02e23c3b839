package grants

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/agent-ci/agent-ci/policy/pathname"
	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

// Landlock returns the grants for a sandbox without namespaces. Landlock refuses everything else and
// cannot exclude a file from a granted folder. So the grants list the siblings of hidden files one by
// one. An error is an InseparableError.
func (p *Plan) Landlock() (*stage.Landlock, error) {
	if err := p.checkSeparable(); err != nil {
		return nil, err
	}
	denied := append([]string{"/tmp", "/var/tmp", "/run", "/var/run", "/dev", "/sys/kernel/debug", "/sys/kernel/tracing", "/sys/fs/bpf"}, p.unreadableByLandlock()...)
	landlock := &stage.Landlock{
		Read: append(siblingsCovering("/", denied), p.readable...),
		Use:  []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"},
	}
	landlock.Read = append(landlock.Read, p.workspace, p.folders.inScratch("copies"))
	for _, folder := range slices.Concat(p.homeInPrivateFolder(), p.caches, p.restrictions.ReadOnly) {
		for _, real := range (Layers{}).resolveIfExists(folder) {
			landlock.Read = append(landlock.Read, siblingsCovering(real, p.unreadableByLandlock())...)
		}
	}
	for _, folder := range p.borrowed {
		landlock.Read = append(landlock.Read, siblingsCovering(folder, p.hidden)...)
	}
	landlock.Write = append(append(landlock.Write, p.writable...), p.folders.privateWritable()...)
	if entries, err := os.ReadDir("/dev/shm"); err == nil && len(entries) == 0 {
		landlock.Write = append(landlock.Write, "/dev/shm") // Python's multiprocessing needs it; other programs may own existing files in it
	}
	return landlock, nil
}

// homeInPrivateFolder returns a home folder inside a private folder such as /tmp, which is not readable as a
// whole. Programs fail if they cannot read their settings in it.
func (p *Plan) homeInPrivateFolder() []string {
	if p.home == "" || !pathname.IsInAny(p.home, privateFolders...) {
		return nil
	}
	return []string{p.home}
}

// unreadableByLandlock returns the files that Landlock must hide: hidden ones, and those with cleaned copies.
func (p *Plan) unreadableByLandlock() []string {
	paths := slices.Clone(p.hidden)
	for file := range p.userCopies {
		paths = append(paths, Layers{}.resolveIfExists(file)...)
	}
	return paths
}

// InseparableError reports a file that Landlock alone cannot hide, since it grants whole folders.
type InseparableError struct {
	What   string
	Remedy string // the beginning of a sentence
}

func (e *InseparableError) Error() string { return e.What }

// checkSeparable returns an InseparableError if Landlock alone cannot hide a file.
func (p *Plan) checkSeparable() error {
	for _, path := range p.hidden {
		if pathname.IsInAny(path, append(p.writable, p.workspace)...) {
			return &InseparableError{path + " lies in a folder that commands may read, and without namespaces it can't be kept from them", "Take it out of there"}
		}
	}
	if len(p.replacements) > 0 {
		return &InseparableError{"files can't be shown to commands in the place of others without namespaces", "Take policy.secrets out of the job"}
	}
	for file := range p.copies {
		return &InseparableError{file + " holds credentials, and without namespaces they can't be kept from commands", p.restrictions.Remedy}
	}
	return nil
}

// siblingsCovering returns the fewest paths that contain everything in dir except the denied paths.
func siblingsCovering(dir string, denied []string) []string {
	containsDenied := false
	for _, path := range denied {
		if path == dir {
			return nil
		}
		containsDenied = containsDenied || pathname.IsInAny(path, dir)
	}
	if !containsDenied {
		return []string{dir}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var paths []string
	for _, entry := range entries {
		if entry.Type()&os.ModeSymlink != 0 {
			continue // the grants for a link's target decide
		}
		paths = append(paths, siblingsCovering(filepath.Join(dir, entry.Name()), denied)...)
	}
	return paths
}
