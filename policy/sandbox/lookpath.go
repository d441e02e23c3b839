//go:build unix

package sandbox

import "github.com/agent-ci/agent-ci/policy/sandbox/stage"

// LookPath finds the program name as a command with env in dir would, so that
// agent-ci's own PATH does not decide what runs. Relative folders in PATH are
// passed over: they would let the checkout decide. The error is an
// exec.ErrNotFound.
func LookPath(name, dir string, env []string) (string, error) {
	return stage.LookPath(name, dir, env)
}
