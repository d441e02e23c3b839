package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/guard"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
)

// The sandboxes of a run by their scratch folders. What setup commands change
// of the user's folder, caches for the most part, the others see; what the
// agent changes there only the agent sees.
const (
	setupScratch = "setup"
	agentScratch = "agent"
	sandboxes    = "sandboxes" // in the state folder
)

// place says where commands run and with what.
type place struct {
	scratch string            // name below sandboxes
	root    string            // that they may write to
	network job.Network       // zero for that of the job's policy
	key     string            // of the job, where the network stands
	lent    map[string]string // folders to read, by where the root borrows them
	begun   *sandbox.Begun
}

// confine finds out how commands can be confined here, before anything is run
// or asked.
func (r *run) confine(ctx context.Context) error {
	for _, folder := range []string{record.OutputsFolder, programsFolder} { // which commands see once they are there
		if _, err := r.rec.MakeFolder(folder); err != nil {
			return err
		}
	}
	if err := r.hide(ctx); err != nil {
		return err
	}
	reached, err := r.probe(ctx, job.Network{})
	if err != nil {
		return err
	}
	r.confined = reached
	r.warnOfOwner()
	if err := r.probeSetup(ctx); err != nil {
		return err
	}
	return r.markGit(ctx)
}

// probe finds out how commands with a network can be confined.
func (r *run) probe(ctx context.Context, network job.Network) (record.Confinement, error) {
	o := r.sandboxOptions(place{scratch: "probe", root: r.checkout.Root(), network: network})
	o.At = "" // what there is, it finds out
	level, layers, err := sandbox.Probe(ctx, o)
	r.removeScratch("probe")
	if err != nil {
		return record.Confinement{}, confinementFailure(o, err)
	}
	return record.Confinement{Level: string(level), Layers: layers}, nil
}

// probeSetup finds out whether setup commands that have a list of hosts can be
// held to it, where the others have none: it takes more than they need.
func (r *run) probeSetup(ctx context.Context) error {
	i := slices.IndexFunc(r.job.Setup, func(step job.SetupStep) bool { return step.Network.Listed() })
	if i < 0 || r.job.Policy.Network.Listed() {
		return nil
	}
	_, err := r.probe(ctx, r.job.Setup[i].Network)
	return err
}

// confinementFailure is the outcome of a sandbox that cannot be opened.
func confinementFailure(o sandbox.Options, err error) error {
	var unavailable *sandbox.UnavailableError
	var checkout *guard.CheckoutError
	switch {
	case errors.As(err, &checkout):
		return outcome.Stopf(outcome.InvalidInput, "unsupported_checkout", "%s.", outcome.Sentence(checkout.Error())).Because(err)
	case !errors.As(err, &unavailable):
		return fmt.Errorf("open the sandbox: %w", err)
	case unavailable.Reached == sandbox.LevelNone && o.Network == sandbox.NetworkProxied:
		return outcome.Stopf(outcome.SandboxUnavailable, "network", "%s", outcome.Sentence(err.Error())).Because(err)
	case unavailable.Reached != sandbox.LevelNone || unavailable.Asked != "" && len(unavailable.Missing) == 0:
		return outcome.Stopf(outcome.SandboxUnavailable, "level", "%s", outcome.Sentence(err.Error())).Because(err)
	}
	return outcome.Stopf(outcome.SandboxUnavailable, "kernel", "%s", outcome.Sentence(err.Error())).Because(err)
}

// openSandbox opens the sandbox of a place.
func (r *run) openSandbox(ctx context.Context, p place) (*sandbox.Sandbox, error) {
	o := r.sandboxOptions(p)
	box, err := sandbox.Open(ctx, o)
	if err != nil {
		return nil, confinementFailure(o, err)
	}
	return box, nil
}

func (r *run) sandboxOptions(p place) sandbox.Options {
	policy := r.job.Policy
	if p.network.IsZero() {
		p.network, p.key = policy.Network, "policy.network"
	}
	o := sandbox.Options{
		Network: sandbox.Network(p.network.Mode), Require: sandbox.Level(policy.Require),
		At:    sandbox.Level(r.confined.Level), // once it is known: what the record says holds for all that come
		Begun: p.begun,
		Folders: grants.Folders{
			Mode: grants.Mode(policy.Sandbox), Workspace: p.root, Lent: p.lent, Unlent: []string{guard.Alternates},
			Writable: r.absolute(policy.Writable), DenyRead: append(r.absolute(policy.DenyRead), r.rec.Path()), Secrets: r.hidden,
			Readable: []string{r.rec.Join(record.OutputsFolder), r.rec.Join(programsFolder)},
			Home:     r.env.Home(), Scratch: r.scratch(p.scratch), Environ: r.options.Environ, Set: slices.Collect(maps.Keys(policy.Env.Set)),
		},
	}
	if checkout := r.root(); p.root != checkout && !strings.HasPrefix(checkout, r.rec.Path()+string(filepath.Separator)) {
		o.Twin = checkout // which the agent may have put anything into; the run directory is closed anyway
	}
	if p.network.Listed() {
		o.Network, o.Serve = sandbox.NetworkProxied, r.serveHosts(p.key, p.network, p.scratch)
	}
	if o.Mode == grants.ReadOnly && p.scratch != agentScratch {
		o.Mode = grants.WorkspaceWrite // the mode is for the agent: setup and checks could not do their work
	}
	if _, err := os.Lstat(r.scratch(setupScratch)); err == nil && p.scratch != setupScratch {
		o.Below = []string{r.scratch(setupScratch)}
	}
	o.Held = heldOfGit(o.Folders)
	return o
}

// heldOfGit tells a sandbox what commands may not do with git's files.
func heldOfGit(f grants.Folders) func(writable, homes []string) (grants.Held, error) {
	return func(writable, homes []string) (grants.Held, error) {
		held, err := guard.Checkout{
			Root: f.Workspace, Writable: writable, Fleeting: f.Twin != "", Home: f.Home, Homes: homes, Environ: f.Environ,
		}.Held()
		return grants.Held(held), err
	}
}

// absolute are paths of the job: below the repository's root, or below the
// user's folder (~/), or absolute.
func (r *run) absolute(paths []string) []string {
	all := make([]string, len(paths))
	for i, path := range paths {
		switch rest, inHome := strings.CutPrefix(path, "~/"); {
		case inHome:
			all[i] = filepath.Join(r.env.Home(), rest)
		case filepath.IsAbs(path):
			all[i] = path
		default:
			all[i] = filepath.Join(r.root(), filepath.FromSlash(path))
		}
	}
	return all
}

func (r *run) scratch(name string) string { return r.rec.Join(record.StateFolder, sandboxes, name) }

// removeScratch removes what commands left in their sandbox.
func (r *run) removeScratch(name string) {
	r.rec.Remove(filepath.Join(record.StateFolder, sandboxes, name))
}

// network is what commands reach: without confinement all that the machine does.
func (r *run) network() string {
	switch {
	case r.confined.Level == string(sandbox.LevelNone):
		return string(sandbox.NetworkFull)
	case r.confined.Level == string(sandbox.LevelLandlock) && r.job.Policy.Network.Mode == string(sandbox.NetworkLoopback):
		return string(sandbox.NetworkNone)
	}
	return r.job.Policy.Network.String()
}

// confinementWords and networkWords tell the model what its commands may do.
func (r *run) confinementWords() string {
	switch {
	case r.confined.Level == string(sandbox.LevelNone):
		return "none: commands run with the rights of the user who started agent-ci"
	case r.job.Policy.Sandbox == string(grants.ReadOnly):
		return "read-only: commands may read the repository and write to $TMPDIR only"
	}
	return "workspace-write: commands may write in " + r.checkout.Root() + ", in $TMPDIR, and, for themselves, in the home folder; .git is read-only, agent-ci commits; what else is refused will not become possible by another way"
}

func (r *run) networkWords() string {
	if network := r.job.Policy.Network; network.Listed() {
		return "these hosts alone, on ports 80 (http) and 443 (https) unless one is given, through the proxy that HTTP_PROXY and HTTPS_PROXY name: " +
			strings.Join(network.Allow, ", ") + "; names do not resolve without it; 127.0.0.1 is of these commands alone and needs no proxy"
	}
	return map[string]string{
		string(sandbox.NetworkNone):     "none: not even 127.0.0.1",
		string(sandbox.NetworkLoopback): "loopback: 127.0.0.1 of these commands alone; nothing outside can be reached",
		string(sandbox.NetworkFull):     "whatever this machine reaches",
	}[r.network()]
}
