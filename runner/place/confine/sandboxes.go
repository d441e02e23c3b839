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
	"github.com/agent-ci/agent-ci/policy/credential"
	"github.com/agent-ci/agent-ci/policy/pathname"
	"github.com/agent-ci/agent-ci/policy/rules"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/policy/sandbox/layer"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// ScratchFolder of the run directory has the scratch folder of each place.
const ScratchFolder = record.StateFolder + "/sandboxes"

// ProgramsFolder has programs at the end of the agent's PATH.
const ProgramsFolder = record.StateFolder + "/bin"

// Scratch folders known to several places. Setup's changes of home, mostly caches, are visible to
// others; the agent's are private.
const (
	SetupScratch = "setup"
	AgentScratch = "agent"
	ProbeScratch = "probe"
)

// Sandboxes are one run's sandboxes. Set the exported fields before the first call, and do not
// change them later.
type Sandboxes struct {
	Record  *record.Record
	Environ settings.Environment // of agent-ci
	Job     *job.Job
	Rules   *rules.Set // on commands and hosts
	Root    string     // the folder that the agent's commands may change: the checkout's, or a plain one
	Dir     string     // how the user names Root; may be empty

	// ExcludeSecrets excludes found secrets from the checkout and returns the hidden ones; nil without a
	// checkout.
	ExcludeSecrets func(found *grants.Secrets) (*grants.Secrets, error)
	// NoOverlay returns the reason against an overlay, or "". Nil means commands outside runs,
	// which work in Root itself.
	NoOverlay func(ctx context.Context) (why string, err error)
	// RecordedBacking is the work tree's backing of a resumed run, or "".
	RecordedBacking string
	// BorrowedObjects maps a work tree's expected folders to borrowed objects folders.
	BorrowedObjects func(tree string) map[string]string
	// MakeGit makes a .git on the base commit in a folder; none before the first command of the run.
	MakeGit   func(ctx context.Context, dir string) error
	makingGit sync.Mutex
	// CopyTree copies a private tree.
	CopyTree func(ctx context.Context, from gitops.Layer, to string) error
	// Credentials are the secrets of the job with their values, as settings has them.
	Credentials credential.Set
	// EarlierUses holds a resumed run's earlier uses of secrets, to continue counting.
	EarlierUses []transcript.Secret
	// EarlierHidden holds a resumed run's hidden files, or nil.
	EarlierHidden *grants.Secrets
	// BaseTree makes a fresh tree of the base commit, at its first call, where no command may
	// write; nil without a commit.
	BaseTree func(ctx context.Context) (dir string, err error)
	// HasHooks reports hooks that read the workspace beside commands.
	HasHooks bool
	// Authorities vouch for hosts of lists besides those of the machine.
	Authorities settings.Authorities

	confinement     record.Confinement
	services        []resolvedService // in the order of their names
	logNames        sync.Mutex        // guards the names of services' logs
	noOverlayReason string
	treePath        *treePath       // of the private tree; nil where that is in the run directory
	hidden          *grants.Secrets // nil until it was looked for
	borrowed        []string        // folders of objects, as they were then
	hosts           hosts           // that commands asked for
	secretsSetup    secretsSetup
	uses            uses         // of secrets
	filters         atomic.Int64 // sandboxes of filters
	deniedCount     atomic.Int64 // commands and hosts that the policy refused
	exposedBase     string       // path of the base tree for the agent's commands
	strays          strays
}

// Place describes where and how commands run.
type Place struct {
	Scratch string      // name below ScratchFolder
	Root    string      // folder that they may write to; empty for the work tree, or else Sandboxes.Root
	Network job.Network // zero for that of the job's policy
	Key     string      // of the job, where Network stands
	Changes string      // scratch of the place whose overlay of the checkout it works in; empty for Scratch
	// Caches names kept caches to begin with; "" means setup's. Leftovers also shows the kept files
	// of the tree.
	Caches     string
	Leftovers  bool
	Disposable bool // changes of the overlay are discarded, as for checks
	// Services shows commands the job's services.
	Services bool
	// LendsWorkspace lends the workspace to OpenSidecar's sandboxes.
	LendsWorkspace bool
	// CommandKind is the kind that decides about the job's secrets: job.CommandsAgent and so on; ""
	// has none.
	CommandKind string
	Begun       *sandbox.EarlyProcess
}

// AgentPlace is the place of the agent's commands.
func AgentPlace() Place {
	return Place{Scratch: AgentScratch, Services: true, LendsWorkspace: true, CommandKind: job.CommandsAgent}
}

// Confine finds out how commands can be confined here, before anything is run
// or asked.
func (s *Sandboxes) Confine(ctx context.Context) error {
	if err := s.MakeFolders(); err != nil {
		return err
	}
	if err := s.SettleProxy(); err != nil {
		return err
	}
	if err := s.SetUpSecrets(); err != nil {
		return err
	}
	if err := s.Hide(ctx); err != nil {
		return err
	}
	if err := s.FindWorkTree(ctx); err != nil {
		return err
	}
	return s.resolveServices(ctx)
}

// MakeFolders makes the run directory's folders visible to commands. They must exist before a
// sandbox opens.
func (s *Sandboxes) MakeFolders() error {
	for _, folder := range []string{record.OutputsFolder, ProgramsFolder} {
		if _, err := s.Record.MakeFolder(folder); err != nil {
			return err
		}
	}
	return nil
}

// ConfineOthers verifies that setup and checks can be confined to their hosts and secrets, and
// unused secrets protected, if that requires more than the agent's confinement.
func (s *Sandboxes) ConfineOthers(ctx context.Context) error {
	all := s.placesToTry()
	i := slices.IndexFunc(all, s.proxied)
	if i <= 0 { // none, or the agent's, for which it is known
		return nil
	}
	_, _, err := s.probe(ctx, all[i])
	return err
}

// probe finds out how commands with the network and the secrets of a place can be
// confined, and whether in an overlay.
func (s *Sandboxes) probe(ctx context.Context, like Place) (reached record.Confinement, overlaid bool, err error) {
	place := Place{Scratch: ProbeScratch, Network: like.Network, CommandKind: like.CommandKind}
	defer s.Remove(place) // what stays goes with the run's working files
	o := s.Options(place)
	o.At = "" // what there is, the probe finds out
	found, err := sandbox.Probe(ctx, o)
	if err != nil {
		return record.Confinement{}, false, openFailure(o, err)
	}
	return record.Confinement{Level: string(found.Level), Layers: found.Layers, WorkTree: s.confinement.WorkTree}, found.Overlay, nil
}

// Confinement returns the confinement; zero if unknown.
func (s *Sandboxes) Confinement() record.Confinement { return s.confinement }

func (s *Sandboxes) level() sandbox.Level { return sandbox.Level(s.confinement.Level) }

// Event returns the event of how commands are confined. seen is where they see the work tree, or "".
func (s *Sandboxes) Event(seen string) transcript.Policy {
	return transcript.Policy{
		Sandbox: s.Job.Policy.Sandbox, Network: s.Network(), Level: s.confinement.Level, Layers: s.confinement.Layers,
		WorkTree: s.confinement.WorkTree, NoOverlay: s.noOverlayReason, Seen: seen,
	}
}

// AllowsConcurrent reports that several places' sandboxes may be open at once.
func (s *Sandboxes) AllowsConcurrent() bool {
	return s.level() == sandbox.LevelNamespaces || s.level() == sandbox.LevelFull
}

// DeniedCount is how many commands and hosts the policy refused.
func (s *Sandboxes) DeniedCount() int { return int(s.deniedCount.Load()) }

// openFailure returns the outcome for a sandbox that can't be opened.
func openFailure(o sandbox.Options, err error) error {
	var unavailable *sandbox.UnavailableError
	var checkout *guard.CheckoutError
	var overlay *sandbox.OverlayError
	var held *layer.MountedError
	var unshown *grants.UnshowableError
	switch {
	case errors.As(err, &unshown):
		return cannotShowFile(unshown.Path, err)
	case errors.As(err, &held):
		return outcome.Stopf(outcome.InvalidInput, "not_resumable", "The run cannot be resumed: what its commands left running has not ended; end the process %d, and resume the run again.", held.PID).Because(err)
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

// Open opens the sandbox of a place. Where nothing is known of how commands can be
// confined, the first one tells.
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

// View returns a function that returns the place's view of files, for the tools that read them. It
// makes the view when first called. tree returns the overlay's path, or "".
func (s *Sandboxes) View(p Place, tree func() (string, error)) func() (*grants.View, error) {
	return sync.OnceValues(func() (view *grants.View, err error) {
		o := s.Options(p)
		if o.Tree, err = tree(); err != nil {
			return nil, err
		}
		return sandbox.NewView(o, s.level())
	})
}

// Options returns the sandbox options of a place.
func (s *Sandboxes) Options(p Place) sandbox.Options {
	policy := s.Job.Policy
	if p.Network.IsZero() {
		p.Network, p.Key = policy.Network, "policy.network"
	}
	o := sandbox.Options{
		Network: sandbox.Network(p.Network.Mode), Require: sandbox.Level(policy.Require),
		At:           s.level(), // once it is known: what the record says holds for all that come
		EarlyProcess: p.Begun, Folders: s.folders(p),
	}
	if len(o.EarlierScratch) > 0 {
		o.CachesFrom = o.EarlierScratch[0]
	}
	o.Sharing = s.neighbours(p, o.Overlay != "")
	if s.proxied(p) {
		o.Network, o.Serve = sandbox.NetworkProxied, s.serveHosts(p)
	}
	own := s.clientConfigAt(p)
	o.Replacements, o.Variables = own.overrides, own.env
	if own.folder != "" {
		o.Readable = append(o.Readable, own.folder)
	}
	return o
}

// folders returns what commands in a place may read and write.
func (s *Sandboxes) folders(p Place) grants.Folders {
	policy := s.Job.Policy
	f := grants.Folders{
		Mode: grants.Mode(policy.Sandbox), Workspace: s.rootOf(p), NotBorrowed: []string{guard.Alternates},
		Writable: s.Environ.Absolute(s.Root, policy.Writable), DenyRead: s.unreadable(), Secrets: s.hidden,
		Readable: []string{s.Record.Join(record.OutputsFolder), s.Record.Join(ProgramsFolder)},
		Home:     s.Environ.Home(), Scratch: s.scratch(p), Environ: s.Environ, Commands: s.env(), OperatorVariables: slices.Collect(maps.Keys(policy.Env.Set)),
	}
	if f.Workspace != s.Root {
		f.SecondPath = s.Root
	}
	if s.Private() {
		f.BorrowedFolders = s.lent(f.Workspace)
		f.Writable = slices.DeleteFunc(f.Writable, func(path string) bool { return isBelowAny(path, []string{s.Root}) })
		f.DenyRead = append(f.DenyRead, s.unreadableIn(f.Workspace)...)
	}
	if s.Overlaid() && f.Workspace == s.Root {
		f.Overlay, f.LowerLayers, f.RemoveHidden = s.overlayFolderOf(p), s.lowerLayers(p), p.Disposable
		s.useGit(&f, p)
	}
	if f.Mode == grants.ReadOnly && p.Scratch != AgentScratch {
		f.Mode = grants.WorkspaceWrite // the mode is for the agent: setup and checks could not do their work
	}
	f.Readable = append(f.Readable, s.readableObjects()...)
	if s.exposedBase != "" && p.Scratch == AgentScratch {
		f.Readable = append(f.Readable, s.exposedBase)
	}
	below := s.scratch(Place{Scratch: cmp.Or(p.Caches, SetupScratch)})
	if _, err := os.Lstat(below); err == nil && p.Scratch != SetupScratch {
		f.EarlierScratch = []string{below}
	}
	f.Restrictions = gitRestrictions(f, f.Workspace != s.Root || f.Git != "")
	return f
}

// useGit shows commands in an overlay their own .git once made. Before that the checkout's is
// read-only.
func (s *Sandboxes) useGit(f *grants.Folders, p Place) {
	git := s.GitFolder(p)
	if _, err := os.Lstat(git); err == nil {
		f.Git, f.BorrowedFolders = git, s.lent(f.Workspace)
	}
}

func (s *Sandboxes) lent(tree string) map[string]string {
	if s.BorrowedObjects == nil { // there is no tree yet
		return nil
	}
	return s.BorrowedObjects(tree)
}

// unreadableIn returns unreadable paths of a private tree like in the checkout, and the checkout itself
// unless the tree covers it: programs could otherwise be led to code there instead of their tree's.
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

// unreadable returns the unreadable paths, including secrets' files.
func (s *Sandboxes) unreadable() []string {
	policy := s.Job.Policy
	all := append(s.Environ.Absolute(s.Root, policy.DenyRead), s.Record.Path())
	all = append(all, s.otherRunFolders()...)
	if s.treePath != nil {
		all = append(all, filepath.Dir(s.treePath.dir)) // all trees but the one that is the workspace
	}
	for _, file := range []string{s.Job.Model.Identity.TokenFile, s.Environ.Get(settings.IdentityFileVariable)} {
		if filepath.IsAbs(file) {
			all = append(all, tokenPlace(file))
		}
	}
	for _, secret := range policy.Secrets {
		if file := s.Environ.SecretFile(secret); filepath.IsAbs(file) {
			all = append(all, file)
		}
	}
	return all
}

// otherRunFolders returns the folders of other runs: the user's and the campaign's.
func (s *Sandboxes) otherRunFolders() (all []string) {
	for _, folder := range []string{record.StatePath(s.Environ.Get), s.Environ.Get(settings.CampaignVariable)} {
		if filepath.IsAbs(folder) {
			all = append(all, folder)
		}
	}
	return all
}

// readableObjects returns the checkout's borrowed objects folders without denied ones. Commands see
// nothing else of their parent folder, which may hold runs or temporary files.
func (s *Sandboxes) readableObjects() []string {
	denied := s.Environ.Absolute(s.Root, s.Job.Policy.DenyRead)
	return slices.DeleteFunc(slices.Clone(s.borrowed), func(folder string) bool { return isBelowAny(folder, denied) })
}

// isBelowAny reports whether a path is one of others or inside one, with links resolved.
func isBelowAny(path string, others []string) bool {
	return slices.ContainsFunc(others, func(other string) bool {
		return pathname.IsInAny(resolved(path), resolved(other))
	})
}

// resolved is a path without links, as far as there is one.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// tokenPlace returns the path to hide for a token's file: the file, or a pod's volume, where
// Kubernetes puts newer tokens in sibling folders.
func tokenPlace(file string) string {
	folder := filepath.Dir(file)
	if _, err := os.Lstat(filepath.Join(folder, "..data")); err != nil {
		return file
	}
	return folder
}

// gitRestrictions returns a function that tells a sandbox how commands' access to git's files is
// restricted. own means that the workspace's repository is theirs alone.
func gitRestrictions(f grants.Folders, own bool) func(writable, homes []string) (grants.Restrictions, error) {
	c := guard.Checkout{Root: f.Workspace, OwnRepository: own, Home: f.Home, Environ: f.Environ}
	return func(writable, homes []string) (grants.Restrictions, error) {
		c.Writable, c.Homes = writable, homes
		held, err := c.Restrictions()
		return grants.Restrictions(held), err
	}
}

func (s *Sandboxes) rootOf(p Place) string {
	if p.Root == "" && s.Private() {
		return s.treeFolder()
	}
	return cmp.Or(p.Root, s.Root)
}

func (s *Sandboxes) scratch(p Place) string { return s.Record.Join(ScratchFolder, p.Scratch) }

// Remove removes a place's private files: scratch folder and own root.
func (s *Sandboxes) Remove(p Place) error {
	err := sandbox.RemoveScratch(s.scratch(p))
	if p.Root != "" {
		err = errors.Join(err, sandbox.RemoveScratch(p.Root))
	}
	return err
}

// UnconfinedNotice explains danger-full-access to people.
const UnconfinedNotice = "Nothing confines commands (policy.sandbox: danger-full-access): they have all rights of the user who starts agent-ci."

// Network describes the commands' network: unconfined, the machine's.
func (s *Sandboxes) Network() string {
	switch policy := s.Job.Policy; {
	case s.level() == sandbox.LevelNone:
		return string(sandbox.NetworkFull)
	case s.level() == sandbox.LevelLandlock && policy.Network.Mode == string(sandbox.NetworkLoopback):
		return string(sandbox.NetworkNone)
	case len(s.secretsAt(AgentPlace())) > 0:
		words := policy.Network.String() + "; by secrets: " + secretsWords(s.secretsAt(AgentPlace()))
		if policy.Network.Inherits() && !policy.Network.Listed() {
			words += "; by the machine's proxy"
		}
		return words
	default:
		return policy.Network.String()
	}
}

// FilesWords describes the commands' access to files to the model.
func (s *Sandboxes) FilesWords() string {
	switch {
	case s.level() == sandbox.LevelNone:
		return "none: commands run with the rights of the user who started agent-ci"
	case s.Job.Policy.Sandbox == string(grants.ReadOnly):
		return "read-only: commands may read the repository and write to $TMPDIR only"
	}
	return "workspace-write: commands may write in " + s.SandboxPath(AgentPlace()) + ", in $TMPDIR, and, for themselves, in the home folder and in folders of caches; .git is a copy of your own, which agent-ci does not read, and agent-ci makes the commit; what else is refused will not become possible by another way"
}

// NetworkWords tells the model its commands' network.
func (s *Sandboxes) NetworkWords() string {
	if services := s.servicesWords(); services != "" {
		return s.networkWords() + "; services that the runner keeps there, started anew for each check: " + services
	}
	return s.networkWords()
}

func (s *Sandboxes) networkWords() string {
	network, own := s.Job.Policy.Network, s.secretsAt(AgentPlace())
	if network.Listed() {
		return "these hosts alone, on ports 80 (http) and 443 (https) unless one is given, through the proxy that HTTP_PROXY and HTTPS_PROXY name: " +
			describeHosts(network) + "; names do not resolve without it; 127.0.0.1 is of these commands alone and needs no proxy" + useWords(own)
	}
	if len(own) > 0 {
		return "loopback: 127.0.0.1 of these commands alone; of the outside what secrets are for, by https through the proxy that HTTPS_PROXY names, and nothing else" + useWords(own)
	}
	return map[string]string{
		string(sandbox.NetworkNone):     "none: not even 127.0.0.1",
		string(sandbox.NetworkLoopback): "loopback: 127.0.0.1 of these commands alone; nothing outside can be reached",
		string(sandbox.NetworkFull):     "whatever this machine reaches",
	}[s.Network()]
}
