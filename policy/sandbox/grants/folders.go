// Package grants decides which files a command sees and may write. It finds credentials and other
// hidden files, and plans mounts and Landlock grants. Its View applies the same decisions when agent-ci
// itself reads files for the model. It confines and starts nothing, and does not know the purpose of a
// workspace's files.
package grants

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/agent-ci/agent-ci/policy/outside"
)

// Mode limits the changes of commands.
type Mode string

const (
	// ReadOnly permits changes only in private folders such as /tmp.
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
	// SecondPath is a second path of the workspace, for programs that know the workspace by it. "" means
	// none. Without namespaces the path stays as it is outside.
	SecondPath string
	Writable   []string // further writable paths; missing ones are skipped
	Readable   []string // paths that stay readable inside hidden ones
	DenyRead   []string // hidden paths besides the credentials
	// BorrowedFolders maps empty folders of the workspace to readable folders that are also shown there.
	// Without namespaces they are only readable at their own paths. NotBorrowed lists relative paths
	// inside them that are hidden in the workspace.
	BorrowedFolders map[string]string
	NotBorrowed     []string
	// Overlay is the folder for commands' changes of the workspace. Without it, commands change the
	// workspace itself. LowerLayers lists overlays of earlier sandboxes, latest first: their changes are
	// visible and stay unchanged. Overlays require namespaces.
	Overlay     string
	LowerLayers []string
	// Tree is the overlaid workspace for this process's View, from sandbox.Tree.
	Tree string
	// MountedElsewhere means that another sandbox has mounted the workspace and hidden its hidden files.
	// Package sandbox sets it.
	MountedElsewhere bool
	// Git is the folder that commands see as .git of an overlaid workspace. They may write there if they
	// may write in the workspace. "" means the workspace's own .git.
	Git string
	// GitReadOnly keeps commands from writing to Git.
	GitReadOnly bool
	// RemoveHidden removes hidden files from the overlay instead of covering them. The overlay must have
	// no other use.
	RemoveHidden bool
	// Outside has further files that commands must not change, or not see unchanged. It is asked for each
	// plan and may be nil.
	Outside Restricter `json:"-"`
	// Replacements maps paths to the content that commands see there, even at hidden paths. A file that
	// is missing outside is only shown in Home. It requires namespaces.
	Replacements map[string][]byte
	// Secrets is the result of an earlier FindSecrets, or nil to search now.
	Secrets *Secrets

	// Home is the user's home folder. Commands' changes there are private to the sandbox. If the kernel
	// does not support that, Home is read-only and caches move.
	Home string
	// Scratch is a private folder for /tmp and the changes of Home. A later sandbox may reuse it.
	Scratch string
	// EarlierScratch lists scratch folders of earlier sandboxes, latest first. Their changes of Home are
	// visible and stay unchanged.
	EarlierScratch []string
	// RemovedPaths lists paths from CodePointers: sandboxes of EarlierScratch made them, and commands do
	// not see them.
	RemovedPaths []string
	// Resolver shows the configuration of the DNS resolver, even in a private folder such as /run.
	// Package sandbox sets it by the network.
	Resolver bool

	Environ []string // agent-ci's environment, which names further credentials
	// Commands is the commands' environment. Its cache folders outside Home are treated like Home.
	Commands          []string
	OperatorVariables []string // names of variables set by the operator, which keep their values
}

// Restricter knows files that programs outside of the sandbox use.
type Restricter interface {
	// Restrictions gets the folders that commands may write to and their home folders, with resolved links.
	Restrictions(writable, homes []string) (outside.Restrictions, error)
}

// Check returns an error for an unknown mode or a relative path.
func (f Folders) Check() error {
	if !slices.Contains([]Mode{ReadOnly, WorkspaceWrite, DangerFullAccess}, f.Mode) {
		return fmt.Errorf("sandbox mode %q is not known", f.Mode)
	}
	paths := slices.Concat([]string{f.Workspace, f.Scratch}, f.EarlierScratch, f.RemovedPaths, f.LowerLayers, f.Writable, f.Readable, f.DenyRead)
	for _, path := range []string{f.Overlay, f.Git} {
		if path != "" {
			paths = append(paths, path)
		}
	}
	if f.Home != "" {
		paths = append(paths, f.Home)
	}
	paths = slices.AppendSeq(paths, maps.Keys(f.Replacements))
	for place, folder := range f.BorrowedFolders {
		paths = append(paths, place, folder)
	}
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("path %q of a sandbox is not absolute", path)
		}
	}
	return nil
}

// WritableInNamespaces returns the folders that commands may write in namespaces, as given and with
// resolved links. These include home, caches and /tmp, where their changes stay private.
func (f Folders) WritableInNamespaces() []string {
	own := []string{"/tmp", "/var/tmp", "/dev/shm"}
	if f.Home != "" {
		own = append(own, f.Home)
	}
	return f.withModeFolders(append(own, f.cacheFolders()...))
}

// WritableByLandlock returns the writable folders without namespaces, as given and with resolved links.
func (f Folders) WritableByLandlock() []string { return f.withModeFolders(f.privateWritable()) }

// withModeFolders returns own and the folders that the mode makes writable, with resolved links.
func (f Folders) withModeFolders(own []string) []string {
	if f.Mode == WorkspaceWrite {
		own = append(append(own, f.Workspace), f.Writable...)
	}
	return withResolved(own)
}

// sharedWritable returns writable folders that are not private.
func (f Folders) sharedWritable() []string {
	return withResolved(append([]string{f.Workspace}, f.Writable...))
}

// privateWritable returns the writable scratch folders without namespaces.
func (f Folders) privateWritable() []string {
	return []string{f.inScratch("tmp"), f.inScratch("cache")}
}

func (f Folders) inScratch(name string) string { return filepath.Join(f.Scratch, name) }

// makeScratch makes the sandbox's private folders.
func (f Folders) makeScratch() error {
	for _, name := range []string{"tmp", "var-tmp", "cache", "copies"} {
		if err := os.MkdirAll(f.inScratch(name), 0o700); err != nil {
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
		if err := os.Chmod(f.inScratch(name), 0o777|os.ModeSticky); err != nil {
			return fmt.Errorf("make the sandbox's folders: %w", err)
		}
	}
	emptyFile, err := os.OpenFile(f.EmptyFile(), os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return fmt.Errorf("make the sandbox's folders: %w", err)
	}
	return emptyFile.Close()
}

// makeChangesFolders makes the folders that overlayfs needs for private changes, in the scratch folder.
func (f Folders) makeChangesFolders(name string) error {
	for _, folder := range []string{"upper", "work"} {
		if err := os.MkdirAll(filepath.Join(f.inScratch(name), folder), 0o700); err != nil {
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
func (f Folders) EmptyFile() string { return f.inScratch("nothing") }

// writeCopies writes the contents to files in the scratch folder. It returns the file for each path.
func (f Folders) writeCopies(name string, contents map[string][]byte) (map[string]string, error) {
	copies := make(map[string]string, len(contents))
	for i, path := range slices.Sorted(maps.Keys(contents)) {
		copies[path] = f.inScratch(fmt.Sprintf("copies/%s-%d", name, i))
		if err := os.WriteFile(copies[path], contents[path], 0o600); err != nil {
			return nil, err
		}
	}
	return copies, nil
}

// withResolved appends to paths the same paths with resolved links, if they differ.
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
