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

// SandboxProvider opens the sandboxes of hooks.
type SandboxProvider struct {
	Environ settings.Environment // the environment of agent-ci itself
	// BaseTree returns a folder with the base commit's tree, which is the hooks' working directory.
	BaseTree func(ctx context.Context) (string, error)
	// Open opens a sandbox beside the agent's, which may be nil. Hooks there can read the workspace and the
	// base tree. They cannot write, and have no network access.
	Open func(ctx context.Context, agent *sandbox.Sandbox) (*sandbox.Sandbox, error)
	// WritableByCommands lists the folders that the run's commands can write. Hooks never start from there, nor
	// get files from there.
	WritableByCommands []string
}

// hookSandbox holds the open sandboxes of hooks: one that confines, and one for trusted hooks.
type hookSandbox struct {
	confined, outside *sandbox.Sandbox // nil until needed
	tree              string           // folder with the base commit's tree
	users             sync.WaitGroup   // hooks that are running
}

// SetAgentSandbox sets the agent's sandbox for the next questions, or nil for none. It closes the hooks' current
// sandboxes.
func (h *Hooks) SetAgentSandbox(agent *sandbox.Sandbox) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.agent = agent
	h.closeCurrent()
}

// CloseSandbox closes the hooks' sandboxes until the next question, unless the agent has a sandbox. Then other
// sandboxes can mount the same layers.
func (h *Hooks) CloseSandbox() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.agent == nil {
		h.closeCurrent()
	}
}

// closeCurrent closes the hooks' sandboxes after the last running hook. The caller holds the lock.
func (h *Hooks) closeCurrent() {
	r := h.current
	if h.current = nil; r == nil {
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

// acquireSandbox returns the sandbox for a hook, opening it if needed. It adds the hook to in.users, so call
// in.users.Done when the hook has ended.
func (h *Hooks) acquireSandbox(ctx context.Context, one Hook) (box *sandbox.Sandbox, in *hookSandbox, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current == nil {
		tree, err := h.Sandboxes.BaseTree(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("the tree of the base commit, in which it is started, can't be made: %w", err)
		}
		h.current = &hookSandbox{tree: tree}
	}
	r := h.current
	if one.trusted {
		r.outside = cmp.Or(r.outside, &sandbox.Sandbox{Unconfined: outside.Hook})
		r.users.Add(1)
		return r.outside, r, nil
	}
	if r.confined == nil {
		if r.confined, err = h.Sandboxes.Open(ctx, h.agent); err != nil {
			return nil, nil, err
		}
	}
	r.users.Add(1)
	return r.confined, r, nil
}

// maxOutputBytes is how many bytes a hook may write to standard output, and the same to standard error.
const maxOutputBytes = 64 << 10

// errOutputTooLarge means that a hook wrote more than maxOutputBytes.
var errOutputTooLarge = fmt.Errorf("it wrote more than %d KiB", maxOutputBytes>>10)

// hookOutput is the output and exit status of a hook.
type hookOutput struct {
	output, errors []byte
	status         int
}

// run runs a hook with document on its standard input. The error says why there is no answer, such as a timeout
// or too much output. It completes a sentence about the hook.
func (h *Hooks) run(ctx context.Context, one Hook, document []byte) (hookOutput, error) {
	if _, err := one.argv(h.Sandboxes, ""); err != nil { // refuse it before opening a sandbox
		return hookOutput{}, err
	}
	box, in, err := h.acquireSandbox(ctx, one)
	if err != nil {
		return hookOutput{}, err
	}
	defer in.users.Done()
	argv, err := one.argv(h.Sandboxes, in.tree)
	if err != nil {
		return hookOutput{}, err
	}
	limited, cancel := context.WithTimeout(ctx, time.Duration(one.Timeout))
	defer cancel()
	var output, words bytes.Buffer
	status, err := attached.Run(limited, box.Start, sandbox.Command{Argv: argv, Dir: in.tree, Env: h.env(one, in.tree)}, attached.Streams{
		Input: bytes.NewReader(document), Output: attached.UpTo(&output, maxOutputBytes, errOutputTooLarge), Errors: attached.UpTo(&words, maxOutputBytes, errOutputTooLarge),
	})
	switch {
	case errors.Is(err, sandbox.ErrNotStarted):
		err = fmt.Errorf("it could not be started (%w)", err)
	case errors.Is(err, errOutputTooLarge), ctx.Err() != nil:
	case limited.Err() != nil:
		err = fmt.Errorf("it did not answer within %s", time.Duration(one.Timeout))
	case err == nil && status.Signal != "":
		err = fmt.Errorf("it was ended by the signal %s", status.Signal)
	}
	return hookOutput{output.Bytes(), words.Bytes(), status.ExitCode}, err
}

// env returns a hook's environment: variables about the machine, the workflow and the run. It leaves out
// variables such as HOME that lead to a folder which the run's commands can write.
func (h *Hooks) env(one Hook, tree string) []string {
	env := policy.MachineEnvironment(h.Sandboxes.Environ, map[string]string{
		"PATH": h.Sandboxes.path(), "CLAUDE_PROJECT_DIR": h.Facts.WorkDir, confine.BaseTreeVariable: tree, "AGENT_CI_WORKSPACE": h.Facts.WorkDir,
		"AGENT_CI_HOOK": one.Name, "AGENT_CI_RUN_ID": h.Facts.RunID,
	})
	return slices.DeleteFunc(env, func(variable string) bool {
		name, value, _ := strings.Cut(variable, "=")
		return slices.Contains(placeVariables, name) && confine.PointsInto(value, h.Sandboxes.WritableByCommands)
	})
}

// placeVariables name the folders where programs look for their own files.
var placeVariables = []string{"HOME", "TMPDIR", "TMP", "TEMP", "RUNNER_TOOL_CACHE", "AGENT_TOOLSDIRECTORY"}
