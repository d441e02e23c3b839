package confine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// How much of the workspace a sidecar sees.
const (
	SidecarNone  = "none"
	SidecarRead  = "read"
	SidecarWrite = "write"
)

// Sidecar describes a sandbox beside the agent's, for a tool server, hooks or git filters.
type Sidecar struct {
	// Name is the name of its scratch folder, such as mcp-docs. Recorded host requests have it,
	// too. It is unique among open sandboxes.
	Name    string
	Network job.Network // zero for no network
	Key     string      // the job's key that sets Network
	// Workspace is the access to the agent's work tree: SidecarNone, SidecarRead or SidecarWrite.
	// The agent's sandbox lends its work tree. Without an open agent's sandbox, the sidecar sees a
	// snapshot.
	Workspace string
	// BaseTree permits reading a fresh tree of the base commit. Without access to the workspace,
	// that tree is also at the checkout's path.
	BaseTree bool
	// WithoutSetupFiles omits what setup changed in home and caches. Otherwise the sidecar sees it,
	// except files that lead to code that commands may change.
	WithoutSetupFiles bool
	// ReadablePaths lists further readable paths; they may be in the checkout.
	ReadablePaths []string
}

// seesWorkspace reports whether the sidecar sees the agent's work tree.
func (b Sidecar) seesWorkspace() bool {
	return b.Workspace == SidecarRead || b.Workspace == SidecarWrite
}

// sidecars is the state that all sidecars of a run share.
type sidecars struct {
	gitMutex sync.Mutex   // held while their .git is made
	filters  atomic.Int64 // number of sandboxes opened for filters
	strays   strays
}

// BaseTreeVariable is the environment variable with the base tree's path.
const BaseTreeVariable = "AGENT_CI_BASE_TREE"

// WorkspaceVariable is the environment variable with the folder of the agent's commands. Programs
// that start elsewhere need it.
const WorkspaceVariable = "AGENT_CI_WORKSPACE"

// OpenSidecar opens the sandbox that b describes, beside the agent's. The sidecar has none of the job's secrets.
// OpenSidecar first removes the private files of an earlier sidecar with the same name.
//
// box is the agent's open sandbox, which lends its work tree to the sidecar. If box is nil, the sidecar sees a
// snapshot of the tree.
//
// Without namespaces, processes that leave their group survive the sidecar and end with the agent's
// sandbox.
func (s *Sandboxes) OpenSidecar(ctx context.Context, box *sandbox.Sandbox, b Sidecar) (*sandbox.Sandbox, error) {
	if b.Network.IsZero() {
		b.Network = job.Network{Mode: string(sandbox.NetworkNone)}
	}
	place := Place{Scratch: b.Name, Network: b.Network, Key: b.Key}
	if err := sandbox.RemoveScratch(s.scratchPath(place)); err != nil {
		return nil, fmt.Errorf("make room for the sandbox of %s: %w", b.Name, err)
	}
	if _, err := s.Record.MakeFolder(ScratchFolder + "/" + b.Name); err != nil {
		return nil, err
	}
	o := s.Options(place)
	o.Readable, o.CachesFrom = nil, "" // hideStrays may allow only a part of the caches
	if err := s.exposeBaseTree(ctx, &o, b); err != nil {
		return nil, err
	}
	if err := s.exposeWorkspace(ctx, &o, box, b); err != nil {
		return nil, err
	}
	if o.Borrowed != nil {
		defer o.Borrowed.Close()
	}
	o.Readable = append(o.Readable, b.ReadablePaths...)
	o.Outside = gitFiles(o.Folders, o.Workspace != s.Root || o.Git != "") // at s.Root without o.Git is the base tree or an empty folder
	if b.WithoutSetupFiles {
		o.EarlierScratch = nil
	}
	if err := s.hideStrays(ctx, &o, b); err != nil {
		return nil, err
	}
	opened, err := sandbox.Open(ctx, o)
	if err != nil {
		return nil, sidecarFailure(b, o, err)
	}
	opened.AdoptOrphans = false // only one sandbox at a time can adopt orphans
	return opened, nil
}

// exposeBaseTree makes the base tree readable in a sandbox, if permitted.
func (s *Sandboxes) exposeBaseTree(ctx context.Context, o *sandbox.Options, b Sidecar) error {
	if !b.BaseTree || s.BaseTree == nil {
		return nil
	}
	dir, err := s.BaseTree(ctx)
	if err != nil {
		return err
	}
	o.Readable = append(o.Readable, dir)
	return nil
}

// exposeWorkspace gives a sidecar the access to the agent's work tree that b permits. box is the agent's
// open sandbox, which lends its tree. If box is nil, the sidecar sees a snapshot.
func (s *Sandboxes) exposeWorkspace(ctx context.Context, o *sandbox.Options, box *sandbox.Sandbox, b Sidecar) (err error) {
	if o.Mode == grants.DangerFullAccess {
		return nil
	}
	if b.Workspace != SidecarWrite {
		o.Mode = grants.ReadOnly
	}
	if !b.seesWorkspace() {
		return s.hideWorkspace(o)
	}
	if err := s.exposeBaseGit(ctx, &o.Folders); err != nil {
		return err
	}
	if !s.Overlaid() {
		return nil
	}
	if box == nil { // writes to these layers stay private to this sandbox
		o.LowerLayers = slices.Concat(s.overlayFolders(AgentPlace()), s.lowerLayers(AgentPlace()))
		return nil
	}
	if o.Borrowed, err = box.Borrow(b.Workspace == SidecarWrite); err != nil {
		return err
	}
	if o.Borrowed == nil {
		return fmt.Errorf("the sandbox of %s can't be opened again: the workspace was lent to it too often", b.Name)
	}
	o.BorrowedFrom, o.Overlay, o.LowerLayers = s.overlayFolderOf(AgentPlace()), "", nil
	return nil
}

// exposeBaseGit replaces the agent's .git by an unmodified one of the base. There git shows the
// agent's changes, and runs no program that the agent configured. With Landlock alone, files cannot
// be replaced, so nothing happens.
func (s *Sandboxes) exposeBaseGit(ctx context.Context, f *grants.Folders) error {
	if !s.AllowsConcurrent() || s.Checkout == nil {
		return nil
	}
	if err := s.makeSidecarGit(ctx); err != nil {
		return fmt.Errorf("make a .git that shows the agent's change: %w", err)
	}
	s.useGit(f, Place{Scratch: sidecarGit})
	f.GitReadOnly = true
	return nil
}

// makeSidecarGit makes the .git of all sidecars once, even if servers start at the same time. It
// gets its final name when it is complete, because a run may be killed meanwhile.
func (s *Sandboxes) makeSidecarGit(ctx context.Context) error {
	s.sidecars.gitMutex.Lock()
	defer s.sidecars.gitMutex.Unlock()
	git := s.GitFolder(Place{Scratch: sidecarGit})
	if _, err := os.Lstat(git); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	partial := git + ".partial"
	if err := sandbox.RemoveScratch(partial); err != nil {
		return err
	}
	if err := s.Checkout.MakeGit(ctx, partial); err != nil {
		return err
	}
	if _, err := os.Lstat(partial); errors.Is(err, fs.ErrNotExist) { // before the run's first command, MakeGit makes nothing
		return nil
	}
	return os.Rename(partial, git)
}

// sidecarGit is the folder below ScratchFolder with the .git of sidecars.
const sidecarGit = "beside-git"

// overlayFolders returns the folder of a place's overlay, or nothing if the place has no changes.
func (s *Sandboxes) overlayFolders(p Place) []string {
	if _, err := os.Lstat(s.ChangesFolder(p)); err != nil {
		return nil
	}
	return []string{s.overlayFolderOf(p)}
}

// hideWorkspace hides the checkout. Its path shows the base tree if exposeBaseTree made that readable, and
// otherwise cannot be read.
func (s *Sandboxes) hideWorkspace(o *sandbox.Options) error {
	o.Overlay, o.LowerLayers = "", nil
	if len(o.Readable) > 0 {
		o.Workspace, o.SecondPath, o.Readable = o.Readable[0], s.Root, nil
	} else {
		empty, err := s.Record.MakeFolder(emptyFolder)
		if err != nil {
			return err
		}
		o.Workspace = empty
	}
	if o.SecondPath == "" {
		o.DenyRead = append(o.DenyRead, s.Root)
	}
	return nil
}

// countLentMounts counts how often the agent's sandbox may lend its workspace. Hooks need one
// mount. A server needs one for each possible start: up to three until its revision is settled, and
// up to three again after it exits.
func (s *Sandboxes) countLentMounts() (toRead, toWrite int) {
	const starts = 2 * 3
	for _, server := range s.Job.MCPServers {
		switch {
		case server.Command == "": // it runs elsewhere
		case server.Workspace == SidecarRead:
			toRead += starts
		case server.Workspace == SidecarWrite:
			toWrite += starts
		}
	}
	if s.HasHooks {
		toRead++
	}
	return toRead, toWrite
}

// WritableFolders returns the folders where changes by commands are not private.
func (s *Sandboxes) WritableFolders() []string {
	return append(s.Environ.Absolute(s.Root, s.Job.Policy.Writable), s.Root, s.Record.Join(ScratchFolder))
}

// PointsInto reports whether a path is in one of the folders, or leads there through links.
func PointsInto(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return gitops.PassesThrough(path, folder) })
}

// PathWithoutFolders returns a PATH without relative folders and without folders that lead into the
// given folders.
func PathWithoutFolders(list string, folders []string) string {
	list = gitops.SearchPathOutside(list, "")
	for _, folder := range folders {
		list = gitops.SearchPathOutside(list, folder)
	}
	return list
}

// SidecarEnv returns the environment of a sidecar: allowed variables, the variables named in pass,
// and set. It leads no program to code that commands may change. So PATH omits commands' folders,
// and other variables with such a path are dropped.
func (s *Sandboxes) SidecarEnv(pass []string, set map[string]string) (env []string) {
	folders := s.WritableFolders()
	for _, variable := range policy.Environment(s.Environ, pass, set) {
		name, value, _ := strings.Cut(variable, "=")
		_, isSet := set[name]
		isChosen := isSet || slices.Contains(pass, name) // by the job
		switch {
		case name == "PATH":
			env = append(env, "PATH="+PathWithoutFolders(value, folders))
		case isChosen, name == "GITHUB_WORKSPACE", !valuePointsInto(value, folders): // no program loads code by GITHUB_WORKSPACE
			env = append(env, variable)
		}
	}
	return env
}

// valuePointsInto reports whether a value has a path into one of the folders: alone, in a list, or
// in an option such as --require=/x or -I/x.
func valuePointsInto(value string, folders []string) bool {
	words := strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" \t\n,;:=\"'", r) })
	return slices.ContainsFunc(append(filepath.SplitList(value), words...), func(word string) bool {
		at := strings.IndexByte(word, '/')
		return at >= 0 && PointsInto(word[at:], folders)
	})
}

// emptyFolder is the workspace of a sidecar that may see none.
const emptyFolder = ScratchFolder + "/empty"

// sidecarFailure returns the outcome for a sidecar that cannot be opened.
func sidecarFailure(b Sidecar, o sandbox.Options, err error) error {
	err = openFailure(o, err)
	if stop := outcome.ForError(context.Background(), err); stop.Outcome == outcome.SandboxUnavailable {
		return outcome.Stopf(stop.Outcome, stop.Reason, "The sandbox of %s can't be opened here: %s", b.Name, stop.Message).Because(err)
	}
	return err
}

// ShowBase makes the base tree and shows it to the agent's commands. It returns the tree's folder,
// or "" without a commit.
func (s *Sandboxes) ShowBase(ctx context.Context) (dir string, err error) {
	if s.BaseTree == nil {
		return "", nil
	}
	s.exposedBase, err = s.BaseTree(ctx)
	return s.exposedBase, err
}
