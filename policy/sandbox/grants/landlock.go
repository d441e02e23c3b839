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
	if err := p.mustBeSeparable(); err != nil {
		return nil, err
	}
	denied := append([]string{"/tmp", "/var/tmp", "/run", "/var/run", "/dev", "/sys/kernel/debug", "/sys/kernel/tracing", "/sys/fs/bpf"}, p.unreadable()...)
	l := &stage.Landlock{
		Read: append(siblingsCovering("/", denied), p.readable...),
		Use:  []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"},
	}
	l.Read = append(l.Read, p.workspace, p.folders.scratch("copies"))
	for _, folder := range slices.Concat(p.homeInReplaced(), p.caches, p.restrictions.ReadOnly) {
		for _, real := range (layers{}).existing(folder) {
			l.Read = append(l.Read, siblingsCovering(real, p.unreadable())...)
		}
	}
	for _, folder := range p.borrowed {
		l.Read = append(l.Read, siblingsCovering(folder, p.hidden)...)
	}
	l.Write = append(append(l.Write, p.writable...), p.folders.ownFolders()...)
	if shared, err := os.ReadDir("/dev/shm"); err == nil && len(shared) == 0 {
		l.Write = append(l.Write, "/dev/shm") // Python's multiprocessing needs it; other programs may own existing files in it
	}
	return l, nil
}

// homeInReplaced returns a home folder inside a private folder such as /tmp, which is not readable as a
// whole. Programs fail if they cannot read their settings in it.
func (p *Plan) homeInReplaced() []string {
	if p.home == "" || !pathname.IsInAny(p.home, privateFolders...) {
		return nil
	}
	return []string{p.home}
}

// unreadable returns the files that Landlock must hide: hidden ones, and those with cleaned copies.
func (p *Plan) unreadable() []string {
	paths := slices.Clone(p.hidden)
	for file := range p.userCopies {
		paths = append(paths, layers{}.existing(file)...)
	}
	return paths
}

// InseparableError reports a file that Landlock alone cannot hide, since it grants whole folders.
type InseparableError struct {
	What   string
	Remedy string // the beginning of a sentence
}

func (e *InseparableError) Error() string { return e.What }

// mustBeSeparable returns an InseparableError if Landlock alone cannot hide a file.
func (p *Plan) mustBeSeparable() error {
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
	holds := false
	for _, path := range denied {
		if path == dir {
			return nil
		}
		holds = holds || pathname.IsInAny(path, dir)
	}
	if !holds {
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
