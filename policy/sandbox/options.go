package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Mode says what commands may change.
type Mode string

const (
	// ReadOnly leaves them nothing but their own /tmp.
	ReadOnly Mode = "read-only"
	// WorkspaceWrite gives them the workspace and what Options.Writable names.
	WorkspaceWrite Mode = "workspace-write"
	// DangerFullAccess confines nothing.
	DangerFullAccess Mode = "danger-full-access"
)

// Network says what commands reach.
type Network string

const (
	// NetworkNone has no sockets but those between the commands' own processes.
	NetworkNone Network = "none"
	// NetworkLoopback has a loopback of the run's own. Without a network
	// namespace it means NetworkNone.
	NetworkLoopback Network = "loopback"
	// NetworkProxied has a loopback of the run's own, and on it a proxy that
	// Options.Serve gives. It needs a network namespace.
	NetworkProxied Network = "proxied"
	// NetworkFull has what the machine has.
	NetworkFull Network = "full"
)

// Level names how far commands are confined.
type Level string

const (
	// LevelNone means that nothing confines a command.
	LevelNone Level = "none"
	// LevelLandlock is Landlock and seccomp without namespaces.
	LevelLandlock Level = "landlock"
	// LevelNamespaces is namespaces and seccomp without Landlock.
	LevelNamespaces Level = "namespaces"
	// LevelFull is all of them.
	LevelFull Level = "full"
)

// Levels lists the levels, the weakest first.
func Levels() []Level { return []Level{LevelNone, LevelLandlock, LevelNamespaces, LevelFull} }

// reaches says whether l is as strong as required; an empty one is anything.
func (l Level) reaches(required Level) bool {
	return required == "" || slices.Index(Levels(), l) >= slices.Index(Levels(), required)
}

// DefaultProcesses is how many processes a run may have at once.
const DefaultProcesses = 4096

// Options say how commands are confined. Paths are absolute.
type Options struct {
	Mode    Mode
	Network Network
	Require Level // Open fails where less is reached; empty asks for any confinement
	// At is the level that Probe found for the commands of the same run. Open
	// tries more than once and gives neither less nor more: who reads files or
	// judges changes goes by that level. Empty leaves it open; else Require does
	// not count.
	At Level

	// Workspace is the checkout. What git keeps of it is read-only: the folder
	// .git, also where a file .git names another one.
	Workspace string
	// Twin is a folder in whose place commands find the workspace once more, so
	// that what names it finds that; empty for none. Without namespaces it stays
	// what it is.
	Twin     string
	Writable []string // more that may be changed; what does not exist is passed over
	Readable []string // stays readable though it lies in something that is absent
	DenyRead []string // absent, besides the credentials
	// Lent are folders to read that are shown at empty folders of the workspace, by
	// these, too: git's objects, in a tree that borrows them. Without namespaces
	// they are readable where they are.
	Lent map[string]string
	// Secrets are what FindSecrets found of both in the folders that commands may
	// write to, before they ran; nil to look for it.
	Secrets *Secrets

	// Home is the user's folder. Commands may change what is in it, but what
	// they change is their own and gone with the sandbox. Where the kernel
	// can't do that it is read-only, and caches are moved by the environment.
	Home string
	// Scratch is a folder that belongs to this sandbox alone: it keeps /tmp and
	// the changes of Home. A later sandbox that is given it finds both.
	// RemoveScratch removes it.
	Scratch string
	// Below are the scratch folders of sandboxes that were closed before, the
	// latest first: their changes of Home are seen and stay as they are.
	Below []string

	// Serve answers the proxy's clients on a listener that it closes, until stop
	// is called; of NetworkProxied. Commands find the proxy by the variables that
	// HTTP clients know.
	Serve func(net.Listener) (stop func()) `json:"-"`

	// Begun is the process to confine, if one was begun already; Open ends one
	// that is not what it needs.
	Begun *Begun `json:"-"`

	Environ   []string // of agent-ci; names further credentials
	Set       []string // names of variables whose values are the operator's: where caches are moved, theirs stay
	Processes int      // most processes at once; 0 means DefaultProcesses

	without []string // layers to do without, for tests
}

// WritableAt are the folders that commands may write to at a level, as they are
// named and with their links resolved. What they write in the user's folder and
// in /tmp is their own.
func (o Options) WritableAt(level Level) []string {
	var paths []string
	switch level {
	case LevelNone:
		return nil
	case LevelLandlock:
		paths = []string{filepath.Join(o.Scratch, "tmp"), filepath.Join(o.Scratch, "cache")}
	default:
		paths = []string{"/tmp", "/var/tmp", "/dev/shm"}
		if o.Home != "" {
			paths = append(paths, o.Home)
		}
	}
	if o.Mode == WorkspaceWrite {
		paths = append(append(paths, o.Workspace), o.Writable...)
	}
	for _, path := range slices.Clone(paths) {
		if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
			paths = append(paths, real)
		}
	}
	return paths
}

// UnavailableError says that commands can't be confined as was asked.
type UnavailableError struct {
	Reached Level    // what there would have been
	Asked   Level    // what was asked for
	Missing []string // what the kernel refused, and with what words
	Remedy  string   // what to do, a sentence
}

func (e *UnavailableError) Error() string {
	what := "commands can't be confined here"
	if e.Reached != LevelNone {
		what = fmt.Sprintf("commands can be confined here as %q only, and %q is required", e.Reached, e.Asked)
	}
	if len(e.Missing) > 0 {
		what += " (" + strings.Join(e.Missing, "; ") + ")"
	}
	return what + ". " + e.Remedy
}

// CheckoutError is a workspace whose git folder can't be kept from commands.
type CheckoutError struct {
	What   string
	Remedy string // what to do
}

func (e *CheckoutError) Error() string { return e.What + "; " + e.Remedy }

// opensNamespaces are the kernel's settings that let ordinary users make user
// namespaces, each of some distributions.
const opensNamespaces = "kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0"

const remedy = "Allow user namespaces or Landlock on this machine (" + opensNamespaces +
	", or a kernel of 6.2 or newer with landlock in its list of security modules), " +
	"or run without confinement by policy.sandbox: danger-full-access."

// remedyProxied is that where a proxy was asked for.
const remedyProxied = "Allow user namespaces on this machine (" + opensNamespaces + "): " +
	"without a network namespace nothing holds commands to a list of hosts. Or give the network as loopback, none or full."

// unconfinedProxy is why nothing is opened where a list of hosts is to hold
// commands that nothing confines.
func unconfinedProxy(o Options) error {
	return &UnavailableError{
		Reached: LevelNone, Asked: o.Require, Missing: []string{"the mode " + string(DangerFullAccess) + " confines nothing"},
		Remedy: "A list of hosts needs confinement: choose another mode, or give the network as full.",
	}
}

// Probe finds out what Open would reach, by opening a sandbox and closing it.
func Probe(ctx context.Context, o Options) (Level, []string, error) {
	s, err := Open(ctx, o)
	if err != nil {
		return LevelNone, []string{}, err
	}
	return s.Level(), s.Layers(), s.Close()
}

// RemoveScratch removes a scratch folder, also where commands or the kernel
// left folders in it that their owner may not change.
func RemoveScratch(dir string) error {
	if os.RemoveAll(dir) == nil { // as most often: the rights are looked at where they are in the way
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

func (o Options) check() error {
	if !slices.Contains([]Mode{ReadOnly, WorkspaceWrite, DangerFullAccess}, o.Mode) {
		return fmt.Errorf("sandbox mode %q is not known", o.Mode)
	}
	if !slices.Contains([]Network{NetworkNone, NetworkLoopback, NetworkProxied, NetworkFull}, o.Network) {
		return fmt.Errorf("network %q is not known", o.Network)
	}
	if o.Network == NetworkProxied && o.Serve == nil {
		return errors.New("a network by a proxy has nobody who serves")
	}
	for _, level := range []Level{o.Require, o.At} {
		if level != "" && !slices.Contains(Levels(), level) {
			return fmt.Errorf("sandbox level %q is not known", level)
		}
	}
	named := slices.Concat([]string{o.Workspace, o.Scratch}, o.Below, o.Writable, o.Readable, o.DenyRead)
	if o.Home != "" {
		named = append(named, o.Home)
	}
	for place, folder := range o.Lent {
		named = append(named, place, folder)
	}
	for _, path := range named {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("path %q of a sandbox is not absolute", path)
		}
	}
	return nil
}

// within says whether path is one of the folders or lies below one.
func within(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		rel, err := filepath.Rel(folder, path)
		return err == nil && filepath.IsLocal(rel)
	})
}

func isFolder(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}
