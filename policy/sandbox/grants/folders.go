// Package grants owns what of a machine's files a command sees and may write. It
// finds credentials and whatever else is kept from commands, plans the mounts and
// the grants of Landlock that come of it, and gives the View of the same, for who
// reads files on commands' behalf. It confines and starts nothing, and refuses to
// know what the files of a workspace are for.
package grants

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Mode says what commands may change.
type Mode string

const (
	// ReadOnly leaves them nothing but their own /tmp.
	ReadOnly Mode = "read-only"
	// WorkspaceWrite gives them the workspace and what Folders.Writable names.
	WorkspaceWrite Mode = "workspace-write"
	// DangerFullAccess confines nothing.
	DangerFullAccess Mode = "danger-full-access"
)

// Folders say what commands see and may write. Paths are absolute.
type Folders struct {
	Mode Mode
	// Workspace is the folder that commands work in.
	Workspace string
	// Twin is a folder in whose place commands find the workspace once more, so
	// that programs which know the workspace by that path work; empty for none.
	// Without namespaces it stays what it is.
	Twin     string
	Writable []string // more that may be changed; what does not exist is passed over
	Readable []string // stays readable though it lies in something that is absent
	DenyRead []string // absent, besides the credentials
	// Lent are folders to read that are shown at empty folders of the workspace, by
	// these, too. Without namespaces they are readable where they are. Unlent are
	// paths in each of them that are hidden in the workspace.
	Lent   map[string]string
	Unlent []string
	// Overlay is the folder that commands' changes of the workspace go to, so that the
	// workspace stays as it is; empty where they change it. Frozen are such folders of
	// sandboxes that were closed before, the latest first: their changes are seen and
	// stay as they are. An overlay needs namespaces.
	Overlay string
	Frozen  []string
	// Tree is where this process finds the workspace in its overlay as commands see it,
	// for the View; sandbox.Tree says it.
	Tree string
	// Given says that the workspace is a mount of another sandbox: what is kept from commands
	// is kept from them in it already. Package sandbox sets it.
	Given bool
	// Git is the folder .git that commands find in a workspace in an overlay, and may write
	// to where they may write there; empty for the workspace's own.
	Git string
	// GitReadOnly keeps commands from writing to Git.
	GitReadOnly bool
	// Absent has what is kept from commands in a workspace in an overlay removed from
	// the overlay, in place of hidden: nothing else has the overlay.
	Absent bool
	// Held says what of the files of others commands may not change or see as it
	// is, given what they may write to, and the folders of the user, both with links
	// resolved. It is asked for each plan; nil holds nothing.
	Held func(writable, homes []string) (Held, error) `json:"-"`
	// Shown are files that commands read at these paths, in place of what is there, hidden
	// or not. What is not there is shown in Home alone. They need namespaces.
	Shown map[string][]byte
	// Secrets are what FindSecrets found in the folders that commands may write to,
	// before they ran; nil to look for it.
	Secrets *Secrets

	// Home is the user's folder. Commands may change what is in it, but what
	// they change is their own and gone with the sandbox. Where the kernel
	// can't do that it is read-only, and caches are moved by the environment.
	Home string
	// Scratch is a folder that belongs to one sandbox alone: it keeps /tmp and
	// the changes of Home. A later sandbox that is given it finds both.
	Scratch string
	// Below are the scratch folders of sandboxes that were closed before, the
	// latest first: their changes of Home are seen and stay as they are.
	Below []string
	// Gone are paths of what Below changed that are removed from it for these commands alone, as
	// Strays finds them.
	Gone []string
	// Resolver is whether commands see the file by which names are resolved, though
	// it lies in a folder of the machine's. Package sandbox sets it by the network.
	Resolver bool

	Environ []string // of agent-ci; names further credentials
	// Commands is the environment of commands, which names folders of caches outside of
	// Home: those are to commands what Home is.
	Commands []string
	Set      []string // names of variables whose values are the operator's: where caches are moved, theirs stay
}

// Held is what commands may not do with files, of the workspace and of the user,
// that programs outside obey. Paths are absolute.
type Held struct {
	ReadOnly []string // folders and files that commands may read and not change
	// Cleaned are files of ReadOnly that hold credentials, and what commands see in
	// their place; UserCleaned are such files that are the user's or the system's.
	Cleaned, UserCleaned map[string][]byte
	// Remedy is what to do where commands can't be shown other content than a file
	// of Cleaned has: the beginning of a sentence.
	Remedy string
	Secret []string // files that commands may not read
	// Variables lead programs around files that they may not read, where nothing can
	// lie over those: to the copy of a file of UserCleaned, or to another file.
	Variables map[string]string
}

// Check says whether the mode is known and all paths are absolute.
func (f Folders) Check() error {
	if !slices.Contains([]Mode{ReadOnly, WorkspaceWrite, DangerFullAccess}, f.Mode) {
		return fmt.Errorf("sandbox mode %q is not known", f.Mode)
	}
	named := slices.Concat([]string{f.Workspace, f.Scratch}, f.Below, f.Gone, f.Frozen, f.Writable, f.Readable, f.DenyRead)
	for _, path := range []string{f.Overlay, f.Git} {
		if path != "" {
			named = append(named, path)
		}
	}
	if f.Home != "" {
		named = append(named, f.Home)
	}
	named = slices.AppendSeq(named, maps.Keys(f.Shown))
	for place, folder := range f.Lent {
		named = append(named, place, folder)
	}
	for _, path := range named {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("path %q of a sandbox is not absolute", path)
		}
	}
	return nil
}

// WritableInNamespaces are the folders that commands may write to there, as they are
// named and with their links resolved. What they write in the user's folder, in those
// of caches and in /tmp is their own.
func (f Folders) WritableInNamespaces() []string {
	own := []string{"/tmp", "/var/tmp", "/dev/shm"}
	if f.Home != "" {
		own = append(own, f.Home)
	}
	return f.writableBeside(append(own, f.cacheFolders()...))
}

// WritableByLandlock are those where there are no namespaces.
func (f Folders) WritableByLandlock() []string { return f.writableBeside(f.ownFolders()) }

func (f Folders) writableBeside(own []string) []string {
	if f.Mode == WorkspaceWrite {
		own = append(append(own, f.Workspace), f.Writable...)
	}
	return withReal(own)
}

// shared are the folders that commands may write to and that hold what is not their
// own.
func (f Folders) shared() []string { return withReal(append([]string{f.Workspace}, f.Writable...)) }

// ownFolders are the scratch folders that commands write to where there are no
// namespaces.
func (f Folders) ownFolders() []string { return []string{f.scratch("tmp"), f.scratch("cache")} }

func (f Folders) scratch(name string) string { return filepath.Join(f.Scratch, name) }

// makeScratch makes the folders that a sandbox needs for itself.
func (f Folders) makeScratch() error {
	for _, name := range []string{"tmp", "var-tmp", "cache", "copies"} {
		if err := os.MkdirAll(f.scratch(name), 0o700); err != nil {
			return fmt.Errorf("make the sandbox's folders: %w", err)
		}
	}
	if err := f.makeChanges("home"); err != nil {
		return err
	}
	if err := f.makeOverlay(); err != nil {
		return fmt.Errorf("make the sandbox's folders: %w", err)
	}
	for _, name := range []string{"tmp", "var-tmp"} {
		if err := os.Chmod(f.scratch(name), 0o777|os.ModeSticky); err != nil {
			return fmt.Errorf("make the sandbox's folders: %w", err)
		}
	}
	nothing, err := os.OpenFile(f.Nothing(), os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return fmt.Errorf("make the sandbox's folders: %w", err)
	}
	return nothing.Close()
}

// makeChanges makes what overlayfs needs for changes of a folder that are the
// sandbox's own.
func (f Folders) makeChanges(name string) error {
	for _, folder := range []string{"upper", "work"} {
		if err := os.MkdirAll(filepath.Join(f.scratch(name), folder), 0o700); err != nil {
			return fmt.Errorf("make the sandbox's folders: %w", err)
		}
	}
	return nil
}

// Upper is the folder of an overlay that has what changed, as overlayfs writes it down.
func Upper(overlay string) string { return filepath.Join(overlay, "upper") }

// makeOverlay makes the folders of an overlay. The one of the changes is to commands
// what the workspace is.
func (f Folders) makeOverlay() error {
	if f.Overlay == "" {
		return nil
	}
	if err := errors.Join(os.MkdirAll(Upper(f.Overlay), 0o700), os.MkdirAll(filepath.Join(f.Overlay, "work"), 0o700)); err != nil {
		return err
	}
	info, err := os.Stat(f.Workspace)
	if err != nil {
		return err
	}
	return os.Chmod(Upper(f.Overlay), info.Mode().Perm())
}

// Nothing is the empty file that lies over those that are hidden.
func (f Folders) Nothing() string { return f.scratch("nothing") }

// writeCopies writes what commands see in place of files, and says where it lies.
func (f Folders) writeCopies(name string, contents map[string][]byte) (map[string]string, error) {
	copies := make(map[string]string, len(contents))
	for i, path := range slices.Sorted(maps.Keys(contents)) {
		copies[path] = f.scratch(fmt.Sprintf("copies/%s-%d", name, i))
		if err := os.WriteFile(copies[path], contents[path], 0o600); err != nil {
			return nil, err
		}
	}
	return copies, nil
}

// withReal adds to paths where their links lead.
func withReal(paths []string) []string {
	for _, path := range slices.Clone(paths) {
		if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
			paths = append(paths, real)
		}
	}
	return paths
}

// existing is a path with its links resolved; nothing when nothing is there.
func existing(path string) []string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return []string{real}
	}
	return nil
}

func isFolder(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}
