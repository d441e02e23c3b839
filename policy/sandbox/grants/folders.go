// Package grants owns the files that a command sees and may write. It finds credentials and other
// hidden files, plans mounts and Landlock grants, and provides the same as a View for readers on
// commands' behalf. It confines and starts nothing, and does not know the purpose of a workspace's
// files.
package grants

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Mode limits the changes of commands.
type Mode string

const (
	// ReadOnly leaves them nothing but their own /tmp.
	ReadOnly Mode = "read-only"
	// WorkspaceWrite permits the workspace and Folders.Writable.
	WorkspaceWrite Mode = "workspace-write"
	// DangerFullAccess confines nothing.
	DangerFullAccess Mode = "danger-full-access"
)

// Folders describes visible and writable files. Paths are absolute.
type Folders struct {
	Mode Mode
	// Workspace is the commands' working folder.
	Workspace string
	// SecondPath is a second path of the workspace for commands, for programs that know it; "" for none.
	// Without namespaces it is unaffected.
	SecondPath string
	Writable   []string // further writable paths; missing ones are skipped
	Readable   []string // paths that stay readable inside hidden ones
	DenyRead   []string // hidden paths besides the credentials
	// BorrowedFolders maps empty folders of the workspace to readable folders shown there too. Without
	// namespaces they are readable in place. NotBorrowed lists paths inside them, relative, that are hidden
	// in the workspace.
	BorrowedFolders map[string]string
	NotBorrowed     []string
	// Overlay is the folder for commands' changes of the workspace; without it they change the
	// workspace. LowerLayers lists overlays of earlier sandboxes, latest first, visible and unchanged.
	// Overlays require namespaces.
	Overlay     string
	LowerLayers []string
	// Tree is the overlaid workspace for this process's View, from sandbox.Tree.
	Tree string
	// MountedElsewhere marks a workspace mounted by another sandbox, with hidden files already hidden. Package
	// sandbox sets it.
	MountedElsewhere bool
	// Git is the commands' .git in an overlaid workspace. They may write it where they may write in
	// the workspace. "" means the workspace's own.
	Git string
	// GitReadOnly keeps commands from writing to Git.
	GitReadOnly bool
	// RemoveHidden removes hidden files from the overlay instead of covering them. Nothing else uses the
	// overlay.
	RemoveHidden bool
	// Restrictions returns the files of others that commands must not change or see as they are, given
	// writable and home folders with resolved links. It is called for each plan; may be nil.
	Restrictions func(writable, homes []string) (Restrictions, error) `json:"-"`
	// Replacements maps paths to replacement files, shown even over hidden ones. Missing files only appear
	// in Home. It requires namespaces.
	Replacements map[string][]byte
	// Secrets is the result of an earlier FindSecrets, or nil to search now.
	Secrets *Secrets

	// Home is the user's folder. Commands' changes there are private and end with the sandbox. If
	// the kernel cannot do that, it is read-only and caches move.
	Home string
	// Scratch is a private folder for /tmp and the changes of Home. A later sandbox may reuse it.
	Scratch string
	// EarlierScratch lists scratch folders of earlier sandboxes, latest first. Their changes of Home are
	// visible and stay.
	EarlierScratch []string
	// RemovedPaths lists paths made by the sandboxes of EarlierScratch and removed for these commands, from
	// CodePointers.
	RemovedPaths []string
	// Resolver shows the resolver's configuration, even in a folder such as /run that commands have
	// of their own. Package sandbox sets it by the network.
	Resolver bool

	Environ []string // of agent-ci; names further credentials
	// Commands is the commands' environment. Its cache folders outside Home are treated like Home.
	Commands          []string
	OperatorVariables []string // names of variables set by the operator, which moved caches keep
}

// Restrictions restricts files of the workspace and user that outside programs follow. Paths are absolute.
type Restrictions struct {
	ReadOnly []string // folders and files that commands may read and not change
	// Cleaned maps files of ReadOnly with credentials to their visible content. UserCleaned does so
	// for the user's and the system's files.
	Cleaned, UserCleaned map[string][]byte
	// Remedy is the beginning of a sentence, if cleaned content cannot be shown.
	Remedy string
	Secret []string // files hidden from commands
	// Variables directs programs to readable copies if nothing can be mounted: of UserCleaned, or
	// other files.
	Variables map[string]string
}

// Check returns an error for an unknown mode or a relative path.
func (f Folders) Check() error {
	if !slices.Contains([]Mode{ReadOnly, WorkspaceWrite, DangerFullAccess}, f.Mode) {
		return fmt.Errorf("sandbox mode %q is not known", f.Mode)
	}
	named := slices.Concat([]string{f.Workspace, f.Scratch}, f.EarlierScratch, f.RemovedPaths, f.LowerLayers, f.Writable, f.Readable, f.DenyRead)
	for _, path := range []string{f.Overlay, f.Git} {
		if path != "" {
			named = append(named, path)
		}
	}
	if f.Home != "" {
		named = append(named, f.Home)
	}
	named = slices.AppendSeq(named, maps.Keys(f.Replacements))
	for place, folder := range f.BorrowedFolders {
		named = append(named, place, folder)
	}
	for _, path := range named {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("path %q of a sandbox is not absolute", path)
		}
	}
	return nil
}

// WritableInNamespaces returns the writable folders with namespaces, as given and with resolved
// links. Changes in home, caches and /tmp are private.
func (f Folders) WritableInNamespaces() []string {
	own := []string{"/tmp", "/var/tmp", "/dev/shm"}
	if f.Home != "" {
		own = append(own, f.Home)
	}
	return f.writableBeside(append(own, f.cacheFolders()...))
}

// WritableByLandlock returns those without namespaces.
func (f Folders) WritableByLandlock() []string { return f.writableBeside(f.ownFolders()) }

func (f Folders) writableBeside(own []string) []string {
	if f.Mode == WorkspaceWrite {
		own = append(append(own, f.Workspace), f.Writable...)
	}
	return withResolved(own)
}

// shared returns writable folders that are not private.
func (f Folders) shared() []string { return withResolved(append([]string{f.Workspace}, f.Writable...)) }

// ownFolders returns the writable scratch folders without namespaces.
func (f Folders) ownFolders() []string { return []string{f.scratch("tmp"), f.scratch("cache")} }

func (f Folders) scratch(name string) string { return filepath.Join(f.Scratch, name) }

// makeScratch makes the sandbox's private folders.
func (f Folders) makeScratch() error {
	for _, name := range []string{"tmp", "var-tmp", "cache", "copies"} {
		if err := os.MkdirAll(f.scratch(name), 0o700); err != nil {
			return fmt.Errorf("make the sandbox's folders: %w", err)
		}
	}
	if err := f.makeChangesFolders("home"); err != nil {
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
	nothing, err := os.OpenFile(f.EmptyFile(), os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return fmt.Errorf("make the sandbox's folders: %w", err)
	}
	return nothing.Close()
}

// makeChangesFolders makes overlayfs's folders for private changes.
func (f Folders) makeChangesFolders(name string) error {
	for _, folder := range []string{"upper", "work"} {
		if err := os.MkdirAll(filepath.Join(f.scratch(name), folder), 0o700); err != nil {
			return fmt.Errorf("make the sandbox's folders: %w", err)
		}
	}
	return nil
}

// Upper returns the folder with an overlay's changes in overlayfs's format.
func Upper(overlay string) string { return filepath.Join(overlay, "upper") }

// makeOverlay makes an overlay's folders. The folder of the changes gets the workspace's mode.
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

// EmptyFile returns the empty file that covers hidden ones.
func (f Folders) EmptyFile() string { return f.scratch("nothing") }

// writeCopies writes replacement files and returns their places.
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

// withResolved adds the resolved paths.
func withResolved(paths []string) []string {
	for _, path := range slices.Clone(paths) {
		if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
			paths = append(paths, real)
		}
	}
	return paths
}

func isFolder(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}
