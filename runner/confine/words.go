package confine

import (
	"strings"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
)

// UnconfinedWords tell people what danger-full-access means.
const UnconfinedWords = "Nothing confines commands (policy.sandbox: danger-full-access): they have all rights of the user who starts agent-ci."

// Network is what commands reach: without confinement all that the machine does.
func (s *Sandboxes) Network() string {
	switch policy := s.Job.Policy; {
	case s.level() == sandbox.LevelNone:
		return string(sandbox.NetworkFull)
	case s.level() == sandbox.LevelLandlock && policy.Network.Mode == string(sandbox.NetworkLoopback):
		return string(sandbox.NetworkNone)
	default:
		return policy.Network.String()
	}
}

// Words tell the model what its commands may do with files.
func (s *Sandboxes) Words() string {
	switch {
	case s.level() == sandbox.LevelNone:
		return "none: commands run with the rights of the user who started agent-ci"
	case s.Job.Policy.Sandbox == string(grants.ReadOnly):
		return "read-only: commands may read the repository and write to $TMPDIR only"
	}
	return "workspace-write: commands may write in " + s.Root + ", in $TMPDIR, and, for themselves, in the home folder; .git is read-only, agent-ci commits; what else is refused will not become possible by another way"
}

// NetworkWords tell the model what its commands reach.
func (s *Sandboxes) NetworkWords() string {
	if network := s.Job.Policy.Network; network.Listed() {
		return "these hosts alone, on ports 80 (http) and 443 (https) unless one is given, through the proxy that HTTP_PROXY and HTTPS_PROXY name: " +
			strings.Join(network.Allow, ", ") + "; names do not resolve without it; 127.0.0.1 is of these commands alone and needs no proxy"
	}
	return map[string]string{
		string(sandbox.NetworkNone):     "none: not even 127.0.0.1",
		string(sandbox.NetworkLoopback): "loopback: 127.0.0.1 of these commands alone; nothing outside can be reached",
		string(sandbox.NetworkFull):     "whatever this machine reaches",
	}[s.Network()]
}
