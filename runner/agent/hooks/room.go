package hooks

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/outside"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/attached"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

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
	users             sync.WaitGroup // questions that are being answered in it
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

// leave ends the room once nobody uses it. The caller has the lock.
func (h *Hooks) leave() {
	r := h.room
	if h.room = nil; r == nil {
		return
	}
	r.users.Wait()
	for _, box := range []*sandbox.Sandbox{r.confined, r.outside} {
		if box == nil {
			continue
		}
		if err := box.Close(); err != nil {
			h.Record.Warn("processes_left", "After the hooks: %v.", err)
		}
	}
}

// enter returns the sandbox in which a hook runs, and its room, of which the hook is a user from then on.
func (h *Hooks) enter(ctx context.Context, one Hook) (box *sandbox.Sandbox, in *room, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.room == nil {
		tree, err := h.Rooms.BaseTree(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("the tree of the base commit, in which it is started, can't be made: %w", err)
		}
		h.room = &room{tree: tree}
	}
	r := h.room
	if one.trusted {
		r.outside = cmp.Or(r.outside, &sandbox.Sandbox{Unconfined: outside.Hook})
		r.users.Add(1)
		return r.outside, r, nil
	}
	if r.confined == nil {
		if r.confined, err = h.Rooms.Open(ctx, h.agent); err != nil {
			return nil, nil, err
		}
	}
	r.users.Add(1)
	return r.confined, r, nil
}

// most is how many bytes a hook may write, to standard output and to standard error.
const most = 64 << 10

// errTooMuch says that a hook wrote more than most bytes.
var errTooMuch = fmt.Errorf("it wrote more than %d KiB", most>>10)

// said is what a hook wrote before it exited.
type said struct {
	output, errors []byte
	status         int
}

// run runs a hook with a document on its standard input, up to its time limit or its limit of output. An error
// says why there is no answer, for the end of a sentence about the hook.
func (h *Hooks) run(ctx context.Context, one Hook, document []byte) (said, error) {
	if _, err := one.argv(h.Rooms, ""); err != nil { // before anything is opened for it
		return said{}, err
	}
	box, in, err := h.enter(ctx, one)
	if err != nil {
		return said{}, err
	}
	defer in.users.Done()
	argv, err := one.argv(h.Rooms, in.tree)
	if err != nil {
		return said{}, err
	}
	limited, cancel := context.WithTimeout(ctx, time.Duration(one.Timeout))
	defer cancel()
	var output, words bytes.Buffer
	status, err := attached.Run(limited, box.Start, sandbox.Command{Argv: argv, Dir: in.tree, Env: h.env(one, in.tree)}, attached.Streams{
		Input: bytes.NewReader(document), Output: attached.UpTo(&output, most, errTooMuch), Errors: attached.UpTo(&words, most, errTooMuch),
	})
	switch {
	case errors.Is(err, sandbox.ErrNotStarted):
		err = fmt.Errorf("it could not be started (%w)", err)
	case errors.Is(err, errTooMuch), ctx.Err() != nil:
	case limited.Err() != nil:
		err = fmt.Errorf("it did not answer within %s", time.Duration(one.Timeout))
	case err == nil && status.Signal != "":
		err = fmt.Errorf("it was ended by the signal %s", status.Signal)
	}
	return said{output.Bytes(), words.Bytes(), status.ExitCode}, err
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
