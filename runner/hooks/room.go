package hooks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/settings"
)

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Rooms are where hooks run.
type Rooms struct {
	Environ settings.Environment // of agent-ci
	// BaseTree is the fresh tree of the base commit, in which they are started.
	BaseTree func(ctx context.Context) (string, error)
	// Open opens a sandbox beside that of the agent, which is nil where there is none open. The
	// hooks see the workspace and the base tree there, write neither, and reach no network.
	Open func(ctx context.Context, agent *sandbox.Sandbox) (*sandbox.Sandbox, error)
}

// room is an open sandbox with what is started in it.
type room struct {
	confined, outside *sandbox.Sandbox // nil until they are needed
	tree              string
	users             int  // questions that are being answered in it
	over              bool // it is to be closed once nobody uses it
}

// Beside says which sandbox of the agent the next questions are asked beside; nil for none. What
// the hooks ran in before is ended.
func (h *Hooks) Beside(agent *sandbox.Sandbox) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.agent = agent
	h.leave()
}

// Rest ends what the hooks ran in, until the next question. It must not be in the way of a
// sandbox that mounts the same layers.
func (h *Hooks) Rest() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.agent == nil {
		h.leave()
	}
}

// leave ends the room. The caller has the lock.
func (h *Hooks) leave() {
	if r := h.room; r != nil {
		h.room = nil
		if r.over = true; r.users == 0 {
			h.close(r)
		}
	}
}

func (h *Hooks) close(r *room) {
	for _, box := range []*sandbox.Sandbox{r.confined, r.outside} {
		if box == nil {
			continue
		}
		if err := box.Close(); err != nil {
			h.Record.Warn("processes_left", "After the hooks: %v.", err)
		}
	}
}

// enter gives the sandbox in which a hook runs, and what is to be called when it has.
func (h *Hooks) enter(ctx context.Context, one Hook) (box *sandbox.Sandbox, tree string, leave func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.room == nil {
		tree, err := h.Rooms.BaseTree(ctx)
		if err != nil {
			return nil, "", nil, fmt.Errorf("the tree of the base commit, in which it is started, can't be made: %w", err)
		}
		h.room = &room{tree: tree}
	}
	r := h.room
	switch {
	case one.trusted && r.outside == nil:
		r.outside = new(sandbox.Sandbox)
	case !one.trusted && r.confined == nil:
		if r.confined, err = h.Rooms.Open(ctx, h.agent); err != nil {
			return nil, "", nil, err
		}
	}
	if box = r.confined; one.trusted {
		box = r.outside
	}
	r.users++
	return box, r.tree, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if r.users--; r.users == 0 && r.over {
			h.close(r)
		}
	}, nil
}

// run runs a hook with a document on its standard input.
func (h *Hooks) run(ctx context.Context, one Hook, document []byte) (said, error) {
	if _, err := one.argv(h.Facts.Root, ""); err != nil { // before anything is opened for it
		return said{}, err
	}
	box, tree, leave, err := h.enter(ctx, one)
	if err != nil {
		return said{}, err
	}
	defer leave()
	argv, err := one.argv(h.Facts.Root, tree)
	if err != nil {
		return said{}, err
	}
	c := sandbox.Command{Argv: argv, Dir: tree, Env: h.env(one, tree)}
	return start(ctx, box, c, document, time.Duration(one.Timeout))
}

// argv is a hook as it is started: a relative program is that of the base tree.
func (h Hook) argv(root, tree string) ([]string, error) {
	argv := slices.Clone(h.Run)
	switch program := argv[0]; {
	case filepath.IsAbs(program):
		if below(program, root) {
			return nil, fmt.Errorf("its program %s lies in what the agent works in; name it by its path in the repository, and the one of the base commit is run", program)
		}
	case !strings.Contains(program, "/"):
	case !filepath.IsLocal(filepath.FromSlash(program)):
		return nil, fmt.Errorf("its program %s is outside of the repository; name it by an absolute path", program)
	case tree != "":
		argv[0] = filepath.Join(tree, filepath.FromSlash(program))
	}
	return argv, nil
}

// below says whether a path leads into a folder, by its name or by links.
func below(name, folder string) bool {
	ways := []string{filepath.Clean(name)}
	if real, err := filepath.EvalSymlinks(name); err == nil {
		ways = append(ways, real)
	}
	return folder != "" && slices.ContainsFunc(ways, func(way string) bool {
		inside, err := filepath.Rel(folder, way)
		return err == nil && filepath.IsLocal(inside)
	})
}

// env is the environment of a hook: what is harmless of agent-ci's own, without what the job
// passes on to commands, and without folders of what the agent works in, where a program could
// be looked for.
func (h *Hooks) env(one Hook, tree string) []string {
	own := map[string]string{
		"CLAUDE_PROJECT_DIR": h.Facts.WorkDir, "AGENT_CI_BASE_TREE": tree, "AGENT_CI_WORKSPACE": h.Facts.WorkDir,
		"AGENT_CI_HOOK": one.Name, "AGENT_CI_RUN_ID": h.Facts.RunID,
	}
	env := policy.Environment(h.Rooms.Environ, nil, own)
	for i, variable := range env {
		if list, is := strings.CutPrefix(variable, "PATH="); is {
			env[i] = "PATH=" + outside(list, h.Facts.Root)
		}
	}
	return env
}

// outside is a list of folders without those that lead into another.
func outside(list, folder string) string {
	return strings.Join(slices.DeleteFunc(filepath.SplitList(list), func(dir string) bool {
		return !filepath.IsAbs(dir) || below(dir, folder)
	}), string(filepath.ListSeparator))
}

// Starts says what keeps a hook from being started, as far as looking tells; nil for nothing.
// tree is the base tree.
func (h Hook) Starts(environ settings.Environment, root, tree string) error {
	argv, err := h.argv(root, tree)
	if err != nil {
		return err
	}
	if !filepath.IsAbs(argv[0]) {
		for _, dir := range filepath.SplitList(outside(environ.Get("PATH"), root)) {
			if executable(filepath.Join(dir, argv[0])) == nil {
				return nil
			}
		}
		return fmt.Errorf("there is no program %s in PATH", argv[0])
	}
	if err := executable(argv[0]); err != nil {
		return fmt.Errorf("its program %s: %w", h.Run[0], err)
	}
	return interpreter(argv[0])
}

func executable(name string) error {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return errors.New("there is no such file")
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("it is no file")
	case info.Mode()&0o111 == 0:
		return errors.New("it is not executable; set its mode by git update-index --chmod=+x")
	}
	return nil
}

// interpreter says whether the first line of a script names a program that is there.
func interpreter(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, 256)
	n, _ := f.Read(head)
	line, is := strings.CutPrefix(strings.SplitN(string(head[:n]), "\n", 2)[0], "#!")
	words := strings.Fields(line)
	if !is || len(words) == 0 {
		return nil
	}
	if err := executable(words[0]); err != nil {
		return fmt.Errorf("its interpreter %s: %w", words[0], err)
	}
	return nil
}
