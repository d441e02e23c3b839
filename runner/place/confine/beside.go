package confine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// What a sandbox beside the agent's sees of the workspace.
const (
	SidecarNone  = "none"
	SidecarRead  = "read"
	SidecarWrite = "write"
)

// Sidecar describes a sandbox beside the agent's, for a tool server or hooks.
type Sidecar struct {
	// Name is the name of its scratch folder and in the transcript's host requests, such as
	// mcp-docs. It is unique among open ones.
	Name    string
	Network job.Network // zero for none
	Key     string      // of the job, where Network stands
	// Workspace is its access to the agent's work tree: SidecarNone and so on. The agent's sandbox
	// lends it; without an open one, it sees a snapshot.
	Workspace string
	// BaseTree permits reading a fresh tree of the base commit. Without a workspace, that tree is
	// also at the checkout's path.
	BaseTree bool
	// WithoutSetupFiles omits setup's changes of home and caches. Otherwise they are included, except leads to
	// code that commands may change.
	WithoutSetupFiles bool
	// ReadablePaths lists further readable paths, also below the checkout.
	ReadablePaths []string
}

// BaseTreeVariable is programs' variable with the base tree's path.
const BaseTreeVariable = "AGENT_CI_BASE_TREE"

// WorkspaceVariable is the variable with the commands' folder, for programs started elsewhere.
const WorkspaceVariable = "AGENT_CI_WORKSPACE"

// OpenSidecar opens a sandbox beside the agent's, box, which may be nil. It has none of the job's
// secrets. Earlier private files under this name are removed.
//
// Without namespaces, processes that leave their group end with the agent's sandbox instead of this one, which is closed earlier.
func (s *Sandboxes) OpenSidecar(ctx context.Context, box *sandbox.Sandbox, b Sidecar) (*sandbox.Sandbox, error) {
	if b.Network.IsZero() {
		b.Network = job.Network{Mode: string(sandbox.NetworkNone)}
	}
	place := Place{Scratch: b.Name, Network: b.Network, Key: b.Key}
	if err := sandbox.RemoveScratch(s.scratch(place)); err != nil {
		return nil, fmt.Errorf("make room for the sandbox of %s: %w", b.Name, err)
	}
	if _, err := s.Record.MakeFolder(ScratchFolder + "/" + b.Name); err != nil {
		return nil, err
	}
	o := s.Options(place)
	o.Readable, o.CachesFrom = nil, "" // of caches it may be shown a part alone: see hideStrays
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
	o.Restrictions = gitRestrictions(o.Folders, o.Workspace != s.Root || o.Git != "") // else it is the tree of the base, or empty
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
	opened.AdoptOrphans = false // which is for one sandbox at a time
	return opened, nil
}

// exposeBaseTree has a sandbox see the tree of the base.
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

// exposeWorkspace gives a sandbox its permitted access to the agent's work tree.
func (s *Sandboxes) exposeWorkspace(ctx context.Context, o *sandbox.Options, box *sandbox.Sandbox, b Sidecar) (err error) {
	unconfined := o.Mode == grants.DangerFullAccess
	if b.Workspace != SidecarWrite && !unconfined {
		o.Mode = grants.ReadOnly
	}
	switch {
	case unconfined:
		return nil
	case cmp.Or(b.Workspace, SidecarNone) == SidecarNone:
		return s.hideWorkspace(o)
	}
	if err := s.exposeBaseGit(ctx, &o.Folders); err != nil {
		return err
	}
	switch {
	case !s.Overlaid():
	case box != nil:
		if o.Borrowed, err = box.Borrow(b.Workspace == SidecarWrite); o.Borrowed != nil || err != nil {
			o.BorrowedFrom, o.Overlay, o.LowerLayers = s.overlayFolderOf(AgentPlace()), "", nil
			return err
		}
		return fmt.Errorf("the sandbox of %s can't be opened again: the workspace was lent to it too often", b.Name)
	default:
		// Nobody takes the agent's changes from here: writes are private to this sandbox.
		o.LowerLayers = slices.Concat(s.overlayFolders(AgentPlace()), s.lowerLayers(AgentPlace()))
	}
	return nil
}

// exposeBaseGit replaces the agent's .git by an unmodified one of the base: git shows the agent's changes
// there but starts nothing that the agent configured. Landlock alone cannot replace files.
func (s *Sandboxes) exposeBaseGit(ctx context.Context, f *grants.Folders) error {
	if !s.AllowsConcurrent() || s.MakeGit == nil {
		return nil
	}
	if err := s.makeSidecarGit(ctx); err != nil {
		return fmt.Errorf("make a .git that shows the agent's change: %w", err)
	}
	s.useGit(f, Place{Scratch: sidecarGit})
	f.GitReadOnly = true
	return nil
}

// makeSidecarGit makes the .git of sandboxes beside the agent's, once: servers start side by side. It has its
// name when it is whole, since a run may be killed meanwhile.
func (s *Sandboxes) makeSidecarGit(ctx context.Context) error {
	s.makingGit.Lock()
	defer s.makingGit.Unlock()
	git := s.GitFolder(Place{Scratch: sidecarGit})
	if _, err := os.Lstat(git); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	partial := git + ".partial"
	if err := sandbox.RemoveScratch(partial); err != nil {
		return err
	}
	if err := s.MakeGit(ctx, partial); err != nil {
		return err
	}
	if _, err := os.Lstat(partial); errors.Is(err, fs.ErrNotExist) { // no command of the run ran yet
		return nil
	}
	return os.Rename(partial, git)
}

// sidecarGit is the folder below ScratchFolder with these .git folders.
const sidecarGit = "beside-git"

// overlayFolders returns a place's overlay, if any.
func (s *Sandboxes) overlayFolders(p Place) []string {
	if _, err := os.Lstat(s.ChangesFolder(p)); err != nil {
		return nil
	}
	return []string{s.overlayFolderOf(p)}
}

// hideWorkspace hides the checkout. Its path shows the base tree, if permitted.
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

// countLentMounts counts the workspace mounts lent by the agent's sandbox: one for hooks, and for each server
// one per possible start: up to three until its revision is settled, and again after an exit.
func (s *Sandboxes) countLentMounts() (toRead, toWrite int) {
	const starts = 2 * 3
	for _, server := range s.Job.MCPServers {
		switch {
		case server.Command == "":
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

// WritableFolders returns the folders that commands really change. Their other changes are private.
func (s *Sandboxes) WritableFolders() []string {
	return append(s.Environ.Absolute(s.Root, s.Job.Policy.Writable), s.Root, s.Record.Join(ScratchFolder))
}

// PointsInto says whether a path lies in one of some folders, or leads there.
func PointsInto(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return gitops.PassesThrough(path, folder) })
}

// PathWithoutFolders removes folders that lead into some folders from a PATH.
func PathWithoutFolders(list string, folders []string) string {
	return strings.Join(slices.DeleteFunc(filepath.SplitList(list), func(dir string) bool {
		return !filepath.IsAbs(dir) || PointsInto(dir, folders)
	}), string(filepath.ListSeparator))
}

// SidecarEnv returns the environment beside the agent's commands: an allow list and named variables.
// It leads no program to code that commands may change: PATH omits their folders, and other
// variables with one are dropped.
func (s *Sandboxes) SidecarEnv(pass []string, set map[string]string) (env []string) {
	folders := s.WritableFolders()
	for _, variable := range policy.Environment(s.Environ, pass, set) {
		name, value, _ := strings.Cut(variable, "=")
		_, given := set[name]
		switch {
		case name == "PATH":
			variable = "PATH=" + PathWithoutFolders(value, folders)
		case given || slices.Contains(pass, name) || name == "GITHUB_WORKSPACE": // by which no program loads code
		case valuePointsInto(value, folders):
			continue
		}
		env = append(env, variable)
	}
	return env
}

// valuePointsInto reports whether a value has a path into some folders: alone, in a list, or in an option
// such as --require=/x or -I/x.
func valuePointsInto(value string, folders []string) bool {
	words := strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" \t\n,;:=\"'", r) })
	return slices.ContainsFunc(append(filepath.SplitList(value), words...), func(word string) bool {
		at := strings.IndexByte(word, '/')
		return at >= 0 && PointsInto(word[at:], folders)
	})
}

// emptyFolder of the run directory is the workspace of who has none.
const emptyFolder = ScratchFolder + "/empty"

// sidecarFailure is why a sandbox can't be opened, for a person.
func sidecarFailure(b Sidecar, o sandbox.Options, err error) error {
	err = openFailure(o, err)
	if stop := outcome.Of(context.Background(), err); stop.Outcome == outcome.SandboxUnavailable {
		return outcome.Stopf(stop.Outcome, stop.Reason, "The sandbox of %s can't be opened here: %s", b.Name, stop.Message).Because(err)
	}
	return err
}

// ShowBase makes the base tree and shows it to the agent's commands. It returns "" without a
// commit.
func (s *Sandboxes) ShowBase(ctx context.Context) (dir string, err error) {
	if s.BaseTree == nil {
		return "", nil
	}
	s.exposedBase, err = s.BaseTree(ctx)
	return s.exposedBase, err
}
