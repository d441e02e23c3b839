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
	BesideNone  = "none"
	BesideRead  = "read"
	BesideWrite = "write"
)

// Beside says what a sandbox is to be that is opened beside the agent's: of a server of tools,
// of hooks.
type Beside struct {
	// Name is that of its scratch folder, and of who asks for hosts in the transcript, such as
	// mcp-docs. Those that are open at once have different ones.
	Name    string
	Network job.Network // zero for none
	Key     string      // of the job, where Network stands
	// Workspace is what it sees of what the agent works in: BesideNone and so on. The agent's
	// sandbox lends it; where that is not open, it sees that of the agent as it is then.
	Workspace string
	// BaseTree lets it read the fresh tree of the base commit. Without a workspace it finds
	// that tree at the path of the checkout, too.
	BaseTree bool
	// Bare leaves out what setup commands changed of the user's folder and of caches. Else it is
	// there without what leads to code that commands may change.
	Bare bool
	// Reads are more paths that it may read, also below the checkout.
	Reads []string
}

// BaseTreeVariable names the variable by which programs find the tree of the base commit.
const BaseTreeVariable = "AGENT_CI_BASE_TREE"

// WorkspaceVariable names the variable by which programs that are started elsewhere find the
// folder that commands work in.
const WorkspaceVariable = "AGENT_CI_WORKSPACE"

// OpenBeside opens a sandbox beside the agent's, which is box; nil where that is not open. It
// has none of the secrets of the job's commands. What it had of its own before, of this name,
// is gone.
//
// Without namespaces the processes that leave their process group there end with the agent's
// sandbox, not with this one: it is closed before that.
func (s *Sandboxes) OpenBeside(ctx context.Context, box *sandbox.Sandbox, b Beside) (*sandbox.Sandbox, error) {
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
	o.Readable, o.CachesFrom = nil, "" // of caches it may be shown a part alone: see leaveOutStrays
	if err := s.showBase(ctx, &o, b); err != nil {
		return nil, err
	}
	if err := s.showWorkspace(ctx, &o, box, b); err != nil {
		return nil, err
	}
	if o.Borrowed != nil {
		defer o.Borrowed.Close()
	}
	o.Readable = append(o.Readable, b.Reads...)
	o.Held = heldOfGit(o.Folders, o.Workspace != s.Root || o.Git != "") // else it is the tree of the base, or empty
	if b.Bare {
		o.Below = nil
	}
	if err := s.leaveOutStrays(ctx, &o, b); err != nil {
		return nil, err
	}
	opened, err := sandbox.Open(ctx, o)
	if err != nil {
		return nil, besideFailure(b, o, err)
	}
	opened.AdoptOrphans = false // which is for one sandbox at a time
	return opened, nil
}

// showBase has a sandbox see the tree of the base.
func (s *Sandboxes) showBase(ctx context.Context, o *sandbox.Options, b Beside) error {
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

// showWorkspace has a sandbox see what it may of what the agent works in.
func (s *Sandboxes) showWorkspace(ctx context.Context, o *sandbox.Options, box *sandbox.Sandbox, b Beside) (err error) {
	unconfined := o.Mode == grants.DangerFullAccess
	if b.Workspace != BesideWrite && !unconfined {
		o.Mode = grants.ReadOnly
	}
	switch {
	case unconfined:
		return nil
	case cmp.Or(b.Workspace, BesideNone) == BesideNone:
		return s.showNoWorkspace(o)
	}
	if err := s.showGit(ctx, &o.Folders); err != nil {
		return err
	}
	switch {
	case !s.Overlaid():
	case box != nil:
		if o.Borrowed, err = box.Borrow(b.Workspace == BesideWrite); o.Borrowed != nil || err != nil {
			o.BorrowedFrom, o.Overlay, o.Frozen = s.overlay(Agent()), "", nil
			return err
		}
		return fmt.Errorf("the sandbox of %s can't be opened again: the workspace was lent to it too often", b.Name)
	default:
		// Nobody takes the changes of the agent from here: what is written is this sandbox's own.
		o.Frozen = slices.Concat(s.changed(Agent()), s.frozen(Agent()))
	}
	return nil
}

// showGit has a sandbox find, in place of the agent's .git, one of the base that no command wrote to: git
// shows there what the agent changed, and starts nothing that the agent configured. Landlock alone can put
// nothing in place of another.
func (s *Sandboxes) showGit(ctx context.Context, f *grants.Folders) error {
	if !s.Apart() || s.MakeGit == nil {
		return nil
	}
	if err := s.makeBesideGit(ctx); err != nil {
		return fmt.Errorf("make a .git that shows the agent's change: %w", err)
	}
	s.useGit(f, Place{Scratch: besideGit})
	f.GitReadOnly = true
	return nil
}

// makeBesideGit makes the .git of sandboxes beside the agent's, once: servers start side by side. It has its
// name when it is whole, since a run may be killed meanwhile.
func (s *Sandboxes) makeBesideGit(ctx context.Context) error {
	s.makingGit.Lock()
	defer s.makingGit.Unlock()
	git := s.GitFolder(Place{Scratch: besideGit})
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

// besideGit is the folder below ScratchFolder that has the .git of sandboxes beside the agent's.
const besideGit = "beside-git"

// changed is the overlay of a place, where there is one.
func (s *Sandboxes) changed(p Place) []string {
	if _, err := os.Lstat(s.ChangesOf(p)); err != nil {
		return nil
	}
	return []string{s.overlay(p)}
}

// showNoWorkspace has a sandbox see nothing of the checkout, but at its path the tree of the
// base, if it sees that.
func (s *Sandboxes) showNoWorkspace(o *sandbox.Options) error {
	o.Overlay, o.Frozen = "", nil
	if len(o.Readable) > 0 {
		o.Workspace, o.Twin, o.Readable = o.Readable[0], s.Root, nil
	} else {
		empty, err := s.Record.MakeFolder(emptyFolder)
		if err != nil {
			return err
		}
		o.Workspace = empty
	}
	if o.Twin == "" {
		o.DenyRead = append(o.DenyRead, s.Root)
	}
	return nil
}

// lends says how often the agent's sandbox lends the workspace to others: to hooks once, and to
// each server as often as it may be started: up to three times until a revision is settled, and again once it has ended.
func (s *Sandboxes) lends() (toRead, toWrite int) {
	const starts = 2 * 3
	for _, server := range s.Job.MCPServers {
		switch {
		case server.Command == "":
		case server.Workspace == BesideRead:
			toRead += starts
		case server.Workspace == BesideWrite:
			toWrite += starts
		}
	}
	if s.Hooked {
		toRead++
	}
	return toRead, toWrite
}

// Changeable are the folders that the run's commands may really write to; what they change
// anywhere else they alone see.
func (s *Sandboxes) Changeable() []string {
	return append(s.Environ.Absolute(s.Root, s.Job.Policy.Writable), s.Root, s.Record.Join(ScratchFolder))
}

// LeadsInto says whether a path lies in one of some folders, or leads there.
func LeadsInto(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return gitops.LeadsThrough(path, folder) })
}

// PathOutside is a list as in PATH without what leads into some folders.
func PathOutside(list string, folders []string) string {
	return strings.Join(slices.DeleteFunc(filepath.SplitList(list), func(dir string) bool {
		return !filepath.IsAbs(dir) || LeadsInto(dir, folders)
	}), string(filepath.ListSeparator))
}

// BesideEnv is the environment of what runs beside the agent's commands: an allow list, and what
// is named here. What it has of the machine leads no program to code that commands may change:
// PATH has none of their folders, and other variables that name one are left out.
func (s *Sandboxes) BesideEnv(pass []string, set map[string]string) (env []string) {
	folders := s.Changeable()
	for _, variable := range policy.Environment(s.Environ, pass, set) {
		name, value, _ := strings.Cut(variable, "=")
		_, given := set[name]
		switch {
		case name == "PATH":
			variable = "PATH=" + PathOutside(value, folders)
		case given || slices.Contains(pass, name) || name == "GITHUB_WORKSPACE": // by which no program loads code
		case leadsTo(value, folders):
			continue
		}
		env = append(env, variable)
	}
	return env
}

// leadsTo says whether a value names a path that leads into one of some folders: alone, in a list,
// or in an option such as --require=/x or -I/x.
func leadsTo(value string, folders []string) bool {
	words := strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" \t\n,;:=\"'", r) })
	return slices.ContainsFunc(append(filepath.SplitList(value), words...), func(word string) bool {
		at := strings.IndexByte(word, '/')
		return at >= 0 && LeadsInto(word[at:], folders)
	})
}

// emptyFolder of the run directory is the workspace of who has none.
const emptyFolder = ScratchFolder + "/empty"

// besideFailure is why a sandbox can't be opened, for a person.
func besideFailure(b Beside, o sandbox.Options, err error) error {
	err = failure(o, err)
	if stop := outcome.Of(context.Background(), err); stop.Outcome == outcome.SandboxUnavailable {
		return outcome.Stopf(stop.Outcome, stop.Reason, "The sandbox of %s can't be opened here: %s", b.Name, stop.Message).Because(err)
	}
	return err
}

// ShowBase makes the tree of the base, and has the agent's commands see it from then on. It is
// empty where there is no commit.
func (s *Sandboxes) ShowBase(ctx context.Context) (dir string, err error) {
	if s.BaseTree == nil {
		return "", nil
	}
	s.shownBase, err = s.BaseTree(ctx)
	return s.shownBase, err
}
