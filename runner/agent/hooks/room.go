package hooks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/outside"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/task/settings"
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
	// Changeable are the folders that the run's commands may write to, of which no hook is
	// started and no hook gets a file named.
	Changeable []string
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
		r.outside = &sandbox.Sandbox{Unconfined: outside.Hook}
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
	if _, err := one.argv(h.Rooms, ""); err != nil { // before anything is opened for it
		return said{}, err
	}
	box, tree, leave, err := h.enter(ctx, one)
	if err != nil {
		return said{}, err
	}
	defer leave()
	argv, err := one.argv(h.Rooms, tree)
	if err != nil {
		return said{}, err
	}
	c := sandbox.Command{Argv: argv, Dir: tree, Env: h.env(one, tree)}
	return start(ctx, box, c, document, time.Duration(one.Timeout))
}

// env is the environment of a hook: facts of the machine and of the workflow. What leads into
// folders that commands may write to is not in it.
func (h *Hooks) env(one Hook, tree string) []string {
	env := policy.FactsOnly(h.Rooms.Environ, map[string]string{
		"PATH": h.Rooms.path(), "CLAUDE_PROJECT_DIR": h.Facts.WorkDir, confine.BaseTreeVariable: tree, "AGENT_CI_WORKSPACE": h.Facts.WorkDir,
		"AGENT_CI_HOOK": one.Name, "AGENT_CI_RUN_ID": h.Facts.RunID,
	})
	return slices.DeleteFunc(env, func(variable string) bool {
		name, value, _ := strings.Cut(variable, "=")
		return slices.Contains(placeVariables, name) && confine.LeadsInto(value, h.Rooms.Changeable)
	})
}

// placeVariables name folders in which programs look for their files.
var placeVariables = []string{"HOME", "TMPDIR", "TMP", "TEMP", "RUNNER_TOOL_CACHE", "AGENT_TOOLSDIRECTORY"}
