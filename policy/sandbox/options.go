package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/policy/sandbox/layer"
)

// Network is the reach of commands.
type Network string

const (
	// NetworkNone permits only sockets between the commands' own processes.
	NetworkNone Network = "none"
	// NetworkLoopback has a loopback of the run's own. Without a network
	// namespace it means NetworkNone.
	NetworkLoopback Network = "loopback"
	// NetworkProxied is an own loopback with a proxy from Options.Serve. It requires a network
	// namespace.
	NetworkProxied Network = "proxied"
	// NetworkFull is the machine's network.
	NetworkFull Network = "full"
)

// Level names how far commands are confined.
type Level string

const (
	// LevelNone is no confinement.
	LevelNone Level = "none"
	// LevelLandlock is Landlock and seccomp without namespaces.
	LevelLandlock Level = "landlock"
	// LevelNamespaces is namespaces and seccomp without Landlock.
	LevelNamespaces Level = "namespaces"
	// LevelFull is namespaces and Landlock.
	LevelFull Level = "full"
)

// levels lists all levels, weakest first.
var levels = []Level{LevelNone, LevelLandlock, LevelNamespaces, LevelFull}

// reaches reports whether l is as strong as required. An empty requirement always holds.
func (l Level) reaches(required Level) bool {
	return required == "" || slices.Index(levels, l) >= slices.Index(levels, required)
}

// ProxyPort is the proxy's port on the commands' loopback. It is outside the range from which the kernel
// picks ports.
const ProxyPort = 3128

// defaultProcesses is the maximum number of simultaneous processes of a run.
const defaultProcesses = 4096

// Options configures confinement, visible files and writable files.
type Options struct {
	grants.Folders
	Network Network
	Require Level // the weakest level that Open accepts; "" accepts any confinement
	// At is the level that Probe found for this run. Open then reaches exactly this level, with retries,
	// because the run's view of files depends on it. If set, Require is ignored.
	At Level

	// CachesFrom is the scratch folder of an earlier sandbox. Commands begin with copies of its
	// private caches.
	CachesFrom string

	// Serve serves the proxy's clients on a listener until stop is called, for NetworkProxied.
	// Commands find it by the usual variables.
	Serve func(net.Listener) (stop func()) `json:"-"`

	// Variables overrides the commands' environment, NAME=value. Like Replacements it requires namespaces.
	Variables []string

	Sharing

	// EarlyProcess is a process begun earlier. Open ends it if it does not fit.
	EarlyProcess *EarlyProcess `json:"-"`

	maxProcesses   int           // maximum number of simultaneous processes, for tests; 0 means defaultProcesses
	disabledLayers []string      // layers not to use, for tests and for one level
	overlayWait    time.Duration // longest wait for an overlay in use, for tests; 0 means a minute
}

// WritableAt returns the writable folders at a level.
func (o Options) WritableAt(level Level) []string {
	switch level {
	case LevelNone:
		return nil
	case LevelLandlock:
		return o.WritableByLandlock()
	}
	return o.WritableInNamespaces()
}

// NewView returns the commands' view at a level.
func NewView(o Options, level Level) (*grants.View, error) {
	if level == LevelNone {
		return o.Unconfined(), nil
	}
	p, err := o.plan()
	if err != nil {
		return nil, fmt.Errorf("find what commands may read: %w", err)
	}
	if level == LevelLandlock {
		return p.LandlockView(), nil
	}
	return p.View(), nil
}

// plan computes visible and writable files.
func (o Options) plan() (*grants.Plan, error) {
	o.Resolver, o.MountedElsewhere = o.Network == NetworkFull, o.Borrowed != nil
	return grants.NewPlan(o.Folders)
}

// UnavailableError reports a confinement weaker than required.
type UnavailableError struct {
	Reached Level    // the strongest level that works
	Asked   Level    // the required level
	Missing []string // the steps that the kernel refused, with its errors
	Remedy  string   // what to do, in sentences
}

func (e *UnavailableError) Error() string {
	text := "commands can't be confined here"
	if e.Reached != LevelNone {
		text = fmt.Sprintf("commands can be confined here as %q only, and %q is required", e.Reached, e.Asked)
	}
	if len(e.Missing) > 0 {
		text += " (" + strings.Join(e.Missing, "; ") + ")"
	}
	return text + ". " + e.Remedy
}

// namespaceSettings lists the kernel settings of various distributions that permit user namespaces.
const namespaceSettings = "kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0"

const remedy = "Allow user namespaces or Landlock on this machine (" + namespaceSettings +
	", or a kernel of 6.2 or newer with landlock in its list of security modules), " +
	"or run without confinement by policy.sandbox: danger-full-access."

// remedyProxied is the remedy if a proxy is required.
const remedyProxied = "Allow user namespaces on this machine (" + namespaceSettings + "): " +
	"without a network namespace nothing holds commands to a list of hosts, or keeps secrets from them. Or give the network as loopback, none or full, and no secrets."

// openUnconfined opens an unconfined sandbox unless confinement is required.
func openUnconfined(o Options) (*Sandbox, error) {
	unavailable := &UnavailableError{Reached: LevelNone, Asked: o.Require}
	switch {
	case o.Network == NetworkProxied:
		unavailable.Missing = []string{"the mode " + string(grants.DangerFullAccess) + " confines nothing"}
		unavailable.Remedy = "A list of hosts needs confinement, and so do secrets: choose another mode, or give the network as full, without policy.secrets."
	case o.Sharing.sharesAnything():
		unavailable.Missing = []string{errSharingNeedsNamespaces.Error()}
		unavailable.Remedy = fmt.Sprintf("The mode %s confines nothing: choose another.", grants.DangerFullAccess)
	case !LevelNone.reaches(o.Require):
		unavailable.Remedy = fmt.Sprintf("The mode %s confines nothing: choose another, or require nothing.", grants.DangerFullAccess)
	default:
		return &Sandbox{AdoptOrphans: true}, nil
	}
	return nil, unavailable
}

// Probe opens and closes a sandbox to find the reachable level. It tries an overlay; the error may
// be an OverlayError.
func Probe(ctx context.Context, o Options) (Probed, error) {
	s, err := Open(ctx, o)
	if err != nil {
		return Probed{Level: LevelNone, Layers: []string{}}, err
	}
	if s.tree != "" {
		err = tryOverlay(s.tree)
	}
	return Probed{s.Level(), s.Layers(), s.tree != ""}, errors.Join(err, s.Close())
}

// Probed is the result of Probe.
type Probed struct {
	Level   Level
	Layers  []string
	Overlay bool // the workspace is overlaid
}

// RemoveScratch removes a scratch folder, including read-only folders inside.
func RemoveScratch(dir string) error { return layer.Remove(dir) }

// check refuses unknown names, relative paths, and options that contradict each other.
func (o Options) check() error {
	if !slices.Contains([]Network{NetworkNone, NetworkLoopback, NetworkProxied, NetworkFull}, o.Network) {
		return fmt.Errorf("network %q is not known", o.Network)
	}
	if o.Network == NetworkProxied && o.Serve == nil {
		return errors.New("a network by a proxy has nobody who serves")
	}
	if err := o.Sharing.validate(o.Network); err != nil {
		return err
	}
	for _, level := range []Level{o.Require, o.At} {
		if level != "" && !slices.Contains(levels, level) {
			return fmt.Errorf("sandbox level %q is not known", level)
		}
	}
	return o.Check()
}
