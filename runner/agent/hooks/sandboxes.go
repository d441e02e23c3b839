package hooks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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

// CloseSandbox closes the hooks' sandboxes if the agent has no sandbox, so that other sandboxes can mount the same
// layers. The next question opens them again.
func (h *Hooks) CloseSandbox() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.agent == nil {
		h.closeCurrent()
	}
}

// closeCurrent waits for running hooks and closes the hooks' sandboxes. The caller holds the lock.
func (h *Hooks) closeCurrent() {
	h.running.Wait()
	for _, box := range h.sandboxes {
		if err := box.Close(); err != nil {
			h.Record.Warn("processes_left", "After the hooks: %v.", err)
		}
	}
	h.sandboxes = nil
}

// acquireSandbox returns the sandbox for a hook, opening it if needed. The caller must call h.running.Done when the hook
// has ended.
func (h *Hooks) acquireSandbox(ctx context.Context, hook Hook) (box *sandbox.Sandbox, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	box = h.sandboxes[hook.Trusted]
	switch {
	case box != nil:
	case hook.Trusted:
		box = &sandbox.Sandbox{Unconfined: outside.Hook}
	default:
		if box, err = h.Sandboxes.Open(ctx, h.agent); err != nil {
			return nil, err
		}
	}
	if h.sandboxes == nil {
		h.sandboxes = map[bool]*sandbox.Sandbox{}
	}
	h.sandboxes[hook.Trusted] = box
	h.running.Add(1)
	return box, nil
}

// maxOutputBytes is how many bytes a hook may write to standard output, and the same to standard error.
const maxOutputBytes = 64 << 10

// errOutputTooLarge means that a hook wrote more than maxOutputBytes.
var errOutputTooLarge = fmt.Errorf("it wrote more than %d KiB", maxOutputBytes>>10)

// hookOutput is the output and exit status of a hook.
type hookOutput struct {
	stdout, stderr []byte
	exitStatus     int
}

// run runs a hook with document on its standard input and returns its output. The error, such as a timeout or too much
// output, completes a sentence about the hook.
func (h *Hooks) run(ctx context.Context, hook Hook, document []byte) (hookOutput, error) {
	tree, err := h.Sandboxes.BaseTree(ctx)
	if err != nil {
		return hookOutput{}, fmt.Errorf("the tree of the base commit, in which it is started, can't be made: %w", err)
	}
	argv, err := hook.argv(h.Sandboxes, tree)
	if err != nil {
		return hookOutput{}, err
	}
	box, err := h.acquireSandbox(ctx, hook)
	if err != nil {
		return hookOutput{}, err
	}
	defer h.running.Done()
	limited, cancel := context.WithTimeout(ctx, hook.timeout)
	defer cancel()
	var stdout, stderr bytes.Buffer
	status, err := attached.Run(limited, box.Start, sandbox.Command{Argv: argv, Dir: tree, Env: h.env(hook, tree)}, attached.Streams{
		Input: bytes.NewReader(document), Output: attached.UpTo(&stdout, maxOutputBytes, errOutputTooLarge), Errors: attached.UpTo(&stderr, maxOutputBytes, errOutputTooLarge),
	})
	switch {
	case errors.Is(err, sandbox.ErrNotStarted):
		err = fmt.Errorf("it could not be started (%w)", err)
	case errors.Is(err, errOutputTooLarge), ctx.Err() != nil: // err says it
	case limited.Err() != nil:
		err = fmt.Errorf("it did not answer within %s", hook.timeout)
	case err == nil && status.Signal != "":
		err = fmt.Errorf("it was ended by the signal %s", status.Signal)
	}
	return hookOutput{stdout.Bytes(), stderr.Bytes(), status.ExitCode}, err
}

// env returns a hook's environment variables about the machine, the workflow and the run. It leaves out a variable
// such as HOME if its folder can be written by the run's commands.
func (h *Hooks) env(hook Hook, tree string) []string {
	env := policy.MachineEnvironment(h.Sandboxes.Environ, map[string]string{
		"PATH": h.Sandboxes.path(), "CLAUDE_PROJECT_DIR": h.Facts.WorkDir, confine.BaseTreeVariable: tree, "AGENT_CI_WORKSPACE": h.Facts.WorkDir,
		"AGENT_CI_HOOK": hook.Name, "AGENT_CI_RUN_ID": h.Record.ID,
	})
	return slices.DeleteFunc(env, func(variable string) bool {
		name, value, _ := strings.Cut(variable, "=")
		return slices.Contains(placeVariables, name) && confine.PointsInto(value, h.Sandboxes.WritableByCommands)
	})
}

// placeVariables name the folders where programs look for their own files.
var placeVariables = []string{"HOME", "TMPDIR", "TMP", "TEMP", "RUNNER_TOOL_CACHE", "AGENT_TOOLSDIRECTORY"}
