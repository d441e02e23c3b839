package confine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/guard"
	"github.com/agent-ci/agent-ci/policy/pathname"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/policy/sandbox/layer"
	"github.com/agent-ci/agent-ci/runner/place/egress"
	"github.com/agent-ci/agent-ci/runner/place/services"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// ScratchFolder is the folder of the run directory with a scratch folder for each place.
const ScratchFolder = record.StateFolder + "/sandboxes"

// ProgramsFolder is the last folder on the PATH of the agent's commands.
const ProgramsFolder = record.StateFolder + "/bin"

// Names of scratch folders that several packages use. Other places see setup's changes of the home
// folder, mostly caches. The agent's changes there are private.
const (
	SetupScratch = "setup"
	AgentScratch = egress.Agent
	ProbeScratch = "probe"
)

// Sandboxes opens the sandboxes of one run. Set the exported fields before the first call, and do
// not change them later.
type Sandboxes struct {
	egress.Control
	Root string // the folder that the agent's commands may change: the checkout, or a plain folder
	Dir  string // the path by which the user calls Root; may be empty

	Checkout Checkout // nil for a plain folder
	Earlier  Earlier
	// BaseTree makes a fresh tree of the base commit at its first call. No command may write there.
	// It is nil without a commit.
	BaseTree func(ctx context.Context) (dir string, err error)
	// HasHooks means that hooks read the workspace while commands run.
	HasHooks bool

	confinement record.Confinement
	private     privateTree
	services    services.Services
	sidecars    sidecars
	hiddenFiles
	deniedCommands atomic.Int64                 // number of commands that the policy refused
	exposedBase    string                       // path of the base tree if the agent's commands see it, or ""
	agentLayer     atomic.Pointer[gitops.Layer] // the overlay of AgentPlace after CloseAgent, or nil
}

// Checkout has what the sandboxes need from a checkout.
type Checkout interface {
	// ExcludeSecrets removes found secrets from the checkout's changes and returns the hidden ones.
	ExcludeSecrets(found *grants.Secrets) (*grants.Secrets, error)
	// NoOverlay returns why the work tree cannot be an overlay, or "".
	NoOverlay(ctx context.Context) (why string, err error)
	// LentObjects returns the objects folders that a work tree borrows, by the path where the tree
	// expects them.
	LentObjects(tree string) map[string]string
	// MakeGit makes a .git on the base commit in a folder. It makes nothing before the run's first
	// command.
	MakeGit(ctx context.Context, dir string) error
	// CopyTree copies a private tree to a folder.
	CopyTree(ctx context.Context, from gitops.Layer, to string) error
}

// Earlier is what a resumed run has from before. It is zero for a new run.
type Earlier struct {
	Backing string          // of the work tree
	Hidden  *grants.Secrets // the hidden files
}

// privateTree describes a work tree that is a copy of the checkout.
type privateTree struct {
	reason string    // why it is no overlay, or ""
	path   *treePath // nil if the tree is in the run directory
}

// Place describes where and how commands run.
type Place struct {
	Scratch string      // name below ScratchFolder
	Root    string      // folder that commands may write to; empty for the work tree
	Network job.Network // zero for that of the job's policy
	Key     string      // the job's key that sets Network
	Changes string      // scratch folder of the place whose overlay this one shares; empty for its own
	// Caches names the kept caches to begin with; "" means setup's. Leftovers also shows the files
	// of the tree that were kept with them.
	Caches     string
	Leftovers  bool
	Disposable bool // the overlay's changes are discarded, as for checks
	// Services makes the job's services reachable.
	Services bool
	// LendsWorkspace makes the sandbox lend its work tree to sidecars and services.
	LendsWorkspace bool
	// CommandKind decides which secrets of the job commands get, such as job.CommandsAgent. With ""
	// they get none.
	CommandKind string
	Begun       *sandbox.EarlyProcess // from Begin; nil to begin with the sandbox
}

// AgentPlace returns the place of the agent's commands.
func AgentPlace() Place {
	return Place{Scratch: AgentScratch, Services: true, LendsWorkspace: true, CommandKind: job.CommandsAgent}
}

// SettleConfinement finds out and stores how commands can be confined on this machine, before anything runs
// and before the model is asked.
func (s *Sandboxes) SettleConfinement(ctx context.Context) error {
	begun := s.Begin(AgentPlace())
	defer begun.End()
	if err := s.MakeFolders(); err != nil {
		return err
	}
	if err := s.CheckMachineProxy(); err != nil {
		return err
	}
	if err := s.SetUpSecrets(); err != nil {
		return err
	}
	if err := s.HideSecretFiles(ctx); err != nil {
		return err
	}
	if err := s.FindWorkTree(ctx, begun); err != nil {
		return err
	}
	return s.resolveServices(ctx)
}

// MakeFolders makes the folders of the run directory that commands see. They must exist before a
// sandbox opens.
func (s *Sandboxes) MakeFolders() error {
	for _, folder := range []string{record.OutputsFolder, ProgramsFolder} {
		if _, err := s.Record.MakeFolder(folder); err != nil {
			return err
		}
	}
	return nil
}

// CheckOthersConfinable returns an error if setup and checks cannot be confined to their hosts, or if secrets
// cannot be protected. SettleConfinement has tested the same for the agent.
func (s *Sandboxes) CheckOthersConfinable(ctx context.Context) error {
	proxied, found := s.FirstProxied()
	if !found || proxied.Name == egress.Agent {
		return nil
	}
	_, _, err := s.probeConfinement(ctx, proxied, nil)
	return err
}

// MostConfined returns a place that needs the strongest confinement of the job: with a proxy, if
// any command has one or there are secrets.
func (s *Sandboxes) MostConfined() Place {
	proxied, _ := s.FirstProxied()
	return probePlace(proxied)
}

// probePlace returns a place to try the confinement of commands.
func probePlace(like egress.Commands) Place {
	return Place{Scratch: ProbeScratch, Network: like.Network, CommandKind: like.Kind}
}

// egressCommands returns the place's commands as egress.Control needs them.
func (p Place) egressCommands() egress.Commands {
	return egress.Commands{Name: p.Scratch, Network: p.Network, Key: p.Key, Kind: p.CommandKind}
}

// probeConfinement finds out how commands with the network and secrets of like can be confined, and whether in
// an overlay. begun is the process of Begin, or nil.
func (s *Sandboxes) probeConfinement(ctx context.Context, like egress.Commands, begun *sandbox.EarlyProcess) (reached record.Confinement, overlaid bool, err error) {
	place := probePlace(like)
	place.Begun = begun
	defer s.Remove(place) // what can't be removed is removed with the run's working files
	o := s.Options(place)
	o.At = "" // try all levels; do not assume the known one
	found, err := sandbox.Probe(ctx, o)
	if err != nil {
		return record.Confinement{}, false, openFailure(o, err)
	}
	return record.Confinement{Level: string(found.Level), Layers: found.Layers, WorkTree: s.confinement.WorkTree}, found.Overlay, nil
}

// Confinement returns the confinement that was reached; zero before that is known.
func (s *Sandboxes) Confinement() record.Confinement { return s.confinement }

func (s *Sandboxes) level() sandbox.Level { return sandbox.Level(s.confinement.Level) }

// Event returns the transcript event about the confinement. seen is the path where commands see the
// work tree, or "".
func (s *Sandboxes) Event(seen string) transcript.Policy {
	return transcript.Policy{
		Sandbox: s.Job.Policy.Sandbox, Network: s.Network(), Level: s.confinement.Level, Layers: s.confinement.Layers,
		WorkTree: s.confinement.WorkTree, NoOverlay: s.private.reason, SandboxPath: seen,
	}
}

// AllowsConcurrent reports whether sandboxes of several places may be open at once.
func (s *Sandboxes) AllowsConcurrent() bool {
	return s.level() == sandbox.LevelNamespaces || s.level() == sandbox.LevelFull
}

// DeniedCount returns how many commands and hosts the policy refused.
func (s *Sandboxes) DeniedCount() int { return int(s.deniedCommands.Load()) + s.RefusedCount() }

// openFailure returns the outcome for a sandbox that cannot be opened.
func openFailure(o sandbox.Options, err error) error {
	var unavailable *sandbox.UnavailableError
	var checkout *guard.CheckoutError
	var overlay *sandbox.OverlayError
	var mounted *layer.MountedError
	var unshown *grants.UnshowableError
	switch {
	case errors.Is(err, grants.ErrNoProc):
		return outcome.Stopf(outcome.SandboxUnavailable, "kernel", "Commands can't be confined here: %v.", grants.ErrNoProc).Because(err)
	case errors.As(err, &unshown):
		return outcome.Stopf(outcome.InvalidInput, "secret",
			"A preset of policy.secrets needs %s for its placeholder: the file is missing, and commands may change its folder; create the file, or remove the folder from policy.writable.", unshown.Path).Because(err)
	case errors.As(err, &mounted):
		return outcome.Stopf(outcome.InvalidInput, "not_resumable", "The run cannot be resumed: what its commands left running has not ended; end the process %d, and resume the run again.", mounted.PID).Because(err)
	case errors.As(err, &overlay):
		return overlay
	case errors.As(err, &checkout):
		return outcome.Stopf(outcome.InvalidInput, "unsupported_checkout", "%s.", outcome.Sentence(checkout.Error())).Because(err)
	case !errors.As(err, &unavailable):
		return fmt.Errorf("open the sandbox: %w", err)
	}
	reason := "kernel"
	switch {
	case unavailable.Reached == sandbox.LevelNone && o.Network == sandbox.NetworkProxied:
		reason = "network"
	case unavailable.Reached != sandbox.LevelNone || unavailable.Asked != "" && len(unavailable.Missing) == 0:
		reason = "level"
	}
	return outcome.Stopf(outcome.SandboxUnavailable, reason, "%s", outcome.Sentence(err.Error())).Because(err)
}

// Open opens the sandbox of a place. If the confinement is not known yet, this sandbox determines
// it.
func (s *Sandboxes) Open(ctx context.Context, p Place) (*sandbox.Sandbox, error) {
	o := s.Options(p)
	box, err := sandbox.Open(ctx, o)
	if err != nil {
		return nil, openFailure(o, err)
	}
	if s.confinement.Level == "" {
		s.confinement = record.Confinement{Level: string(box.Level()), Layers: box.Layers(), WorkTree: s.confinement.WorkTree}
	}
	return box, nil
}

// Begin starts the inner process of a place's sandbox. It gets ready while other work prepares the sandbox. Set
// Place.Begun to it for Open, and end it in any case. It is nil if namespaces confine no commands.
func (s *Sandboxes) Begin(p Place) *sandbox.EarlyProcess {
	if s.isUnconfined() || s.level() != "" && !s.AllowsConcurrent() {
		return nil
	}
	network := p.Network
	if network.IsZero() {
		network = s.Job.Policy.Network
	}
	return sandbox.StartEarly(sandbox.Network(network.Mode))
}

// View returns a function that returns a place's view of files, for tools that read them. Its first
// call makes the view. tree returns the overlay's path, or "".
func (s *Sandboxes) View(p Place, tree func() (string, error)) func() (*grants.View, error) {
	return sync.OnceValues(func() (view *grants.View, err error) {
		o := s.Options(p)
		if o.Tree, err = tree(); err != nil {
			return nil, err
		}
		return sandbox.NewView(o, s.level())
	})
}

// Options returns the options for a place's sandbox.
func (s *Sandboxes) Options(p Place) sandbox.Options {
	policy := s.Job.Policy
	if p.Network.IsZero() {
		p.Network, p.Key = policy.Network, "policy.network"
	}
	o := sandbox.Options{
		Network: sandbox.Network(p.Network.Mode), Require: sandbox.Level(policy.Require),
		At:           s.level(), // once known, the recorded level holds for all later sandboxes
		EarlyProcess: p.Begun, Folders: s.fileAccess(p),
	}
	if len(o.EarlierScratch) > 0 {
		o.CachesFrom = o.EarlierScratch[0]
	}
	o.Sharing = s.sharing(p, o.Overlay != "")
	commands := p.egressCommands()
	if s.Proxied(commands) {
		o.Network, o.Serve = sandbox.NetworkProxied, s.ServeHosts(commands)
	}
	config := s.ClientConfigOf(commands)
	o.Replacements, o.Variables = config.Overrides, config.Env
	if config.Folder != "" {
		o.Readable = append(o.Readable, config.Folder)
	}
	return o
}

// fileAccess returns which files a place's commands may read and write. It closes an overlay that CloseAgent kept,
// because two sandboxes cannot have it.
func (s *Sandboxes) fileAccess(p Place) grants.Folders {
	policy := s.Job.Policy
	f := grants.Folders{
		Mode: grants.Mode(policy.Sandbox), Workspace: s.writableRoot(p), NotBorrowed: []string{guard.Alternates},
		Writable: s.Environ.Absolute(s.Root, policy.Writable), DenyRead: s.unreadablePaths(), Secrets: s.hidden,
		Readable: []string{s.Record.Join(record.OutputsFolder), s.Record.Join(ProgramsFolder)},
		Home:     s.Environ.Home(), Scratch: s.scratchPath(p), Environ: s.Environ, Commands: s.CommandEnv(), OperatorVariables: slices.Collect(maps.Keys(policy.Env.Set)),
	}
	if f.Workspace != s.Root {
		f.SecondPath = s.Root
	}
	if s.Private() {
		f.BorrowedFolders = s.Checkout.LentObjects(f.Workspace)
		f.Writable = slices.DeleteFunc(f.Writable, func(path string) bool { return isBelowAny(path, []string{s.Root}) })
		f.DenyRead = append(f.DenyRead, s.unreadableIn(f.Workspace)...)
	}
	if s.Overlaid() && f.Workspace == s.Root {
		f.Overlay, f.LowerLayers, f.RemoveHidden = s.overlayFolderOf(p), s.lowerLayers(p), p.Disposable
		s.useGit(&f, p)
		if kept := s.agentLayer.Swap(nil); kept != nil {
			_ = kept.Close() // nothing was written through it
		}
	}
	if f.Mode == grants.ReadOnly && p.Scratch != AgentScratch {
		f.Mode = grants.WorkspaceWrite // read-only is meant for the agent; setup and checks could not work
	}
	f.Readable = append(f.Readable, s.readableObjects()...)
	if s.exposedBase != "" && p.Scratch == AgentScratch {
		f.Readable = append(f.Readable, s.exposedBase)
	}
	earlier := s.scratchPath(Place{Scratch: cmp.Or(p.Caches, SetupScratch)}) // commands begin with its home and caches
	if _, err := os.Lstat(earlier); err == nil && p.Scratch != SetupScratch {
		f.EarlierScratch = []string{earlier}
	}
	f.Outside = gitFiles(f, f.Workspace != s.Root || f.Git != "")
	return f
}

// useGit gives commands in an overlay a .git of their own, if it was made. Before that, they see
// the checkout's .git read-only.
func (s *Sandboxes) useGit(f *grants.Folders, p Place) {
	git := s.GitFolder(p)
	if _, err := os.Lstat(git); err == nil {
		f.Git, f.BorrowedFolders = git, s.Checkout.LentObjects(f.Workspace)
	}
}

// unreadableIn returns the paths in a private tree that policy.deny_read names in the checkout. With
// Landlock alone it adds the checkout itself: programs could be led to code there instead of in their tree.
func (s *Sandboxes) unreadableIn(tree string) (all []string) {
	for _, path := range s.Environ.Absolute(s.Root, s.Job.Policy.DenyRead) {
		if rel, is := pathname.Below(s.Root, path); is {
			all = append(all, filepath.Join(tree, rel))
		}
	}
	if s.level() == sandbox.LevelLandlock {
		all = append(all, s.Root)
	}
	return all
}

// unreadablePaths returns the paths that commands may not read, including the files of secrets.
func (s *Sandboxes) unreadablePaths() []string {
	all := append(s.Environ.Absolute(s.Root, s.Job.Policy.DenyRead), s.Record.Path())
	if s.private.path != nil {
		all = append(all, filepath.Dir(s.private.path.dir)) // all private trees except the one used as workspace
	}
	others := []string{record.StatePath(s.Environ.Get), s.Environ.Get(settings.CampaignVariable)} // they contain other runs
	for _, file := range []string{s.Job.Model.Identity.TokenFile, s.Environ.Get(settings.IdentityFileVariable)} {
		others = append(others, tokenPlace(file))
	}
	for _, secret := range s.Job.Policy.Secrets {
		others = append(others, s.Environ.SecretFile(secret))
	}
	return append(all, slices.DeleteFunc(others, func(path string) bool { return !filepath.IsAbs(path) })...)
}

// readableObjects returns the objects folders that the checkout borrows, except denied ones.
// Commands see nothing else in the parents of these folders, which may contain runs or temporary
// files.
func (s *Sandboxes) readableObjects() []string {
	denied := s.Environ.Absolute(s.Root, s.Job.Policy.DenyRead)
	return slices.DeleteFunc(slices.Clone(s.borrowed), func(folder string) bool { return isBelowAny(folder, denied) })
}

// isBelowAny reports whether a path is one of others or inside one. It resolves links.
func isBelowAny(path string, others []string) bool {
	return slices.ContainsFunc(others, func(other string) bool {
		return pathname.IsInAny(withoutLinks(path), withoutLinks(other))
	})
}

// withoutLinks returns a path without links, or the path itself if it cannot be resolved.
func withoutLinks(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// tokenPlace returns the path to hide for a token's file. This is the file, or its folder if that
// is a Kubernetes volume. Kubernetes puts newer tokens into sibling folders there.
func tokenPlace(file string) string {
	folder := filepath.Dir(file)
	if _, err := os.Lstat(filepath.Join(folder, "..data")); err != nil {
		return file
	}
	return folder
}

// gitFiles returns the checkout whose git files commands must not change. ownRepository means that the repository
// in the workspace belongs to the commands alone.
func gitFiles(f grants.Folders, ownRepository bool) guard.Checkout {
	return guard.Checkout{Root: f.Workspace, OwnRepository: ownRepository, Home: f.Home, Environ: f.Environ}
}

// writableRoot returns the folder that a place's commands may write to.
func (s *Sandboxes) writableRoot(p Place) string {
	if p.Root == "" && s.Private() {
		return s.treeFolder()
	}
	return cmp.Or(p.Root, s.Root)
}

// scratchPath returns the path of a place's scratch folder.
func (s *Sandboxes) scratchPath(p Place) string { return s.Record.Join(ScratchFolder, p.Scratch) }

// Remove removes a place's private files: its scratch folder and its own root.
func (s *Sandboxes) Remove(p Place) error {
	err := sandbox.RemoveScratch(s.scratchPath(p))
	if p.Root != "" {
		err = errors.Join(err, sandbox.RemoveScratch(p.Root))
	}
	return err
}

// UnconfinedNotice explains danger-full-access to people.
const UnconfinedNotice = "Nothing confines commands (policy.sandbox: danger-full-access): they have all rights of the user who starts agent-ci."

// Network describes the network of the agent's commands to people.
func (s *Sandboxes) Network() string { return s.DescribeAgentNetwork(s.level()) }

// DescribeFilesToModel describes to the model which files its commands can access.
func (s *Sandboxes) DescribeFilesToModel() string {
	switch {
	case s.level() == sandbox.LevelNone:
		return "none: commands run with the rights of the user who started agent-ci"
	case s.Job.Policy.Sandbox == string(grants.ReadOnly):
		return "read-only: commands may read the repository and write to $TMPDIR only"
	}
	return "workspace-write: commands may write in " + s.SandboxPath(AgentPlace()) + ", in $TMPDIR, and, for themselves, in the home folder and in folders of caches; .git is a copy of your own, which agent-ci does not read, and agent-ci makes the commit; what else is refused will not become possible by another way"
}

// DescribeNetworkToModel describes to the model the network and services of its commands.
func (s *Sandboxes) DescribeNetworkToModel() string {
	words := s.DescribeAgentNetworkToModel(s.level())
	if services := s.services.DescribeToModel(); services != "" {
		words += "; services that the runner keeps there, started anew for each check: " + services
	}
	return words
}
