package extensions

import (
	"fmt"
	"path"

	"github.com/agent-ci/agent-ci/policy/reach"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
)

// registry is a package registry from which a program such as npx downloads the packages that it starts.
type registry struct {
	preset string // name of the network preset that allows hosts
	hosts  []string
}

var (
	npmRegistry = registry{"npm", []string{"registry.npmjs.org"}}
	pypi        = registry{"pypi", []string{"pypi.org", "files.pythonhosted.org"}}
	registries  = map[string]registry{
		"npx": npmRegistry, "npm": npmRegistry, "pnpm": npmRegistry, "bunx": npmRegistry,
		"uvx": pypi, "uv": pypi, "pipx": pypi,
	}
)

// registryHint returns a sentence on how to let the server's program reach its package registry. It returns "" if
// the program has no registry or can reach it already.
func (s *server) registryHint() string {
	program := path.Base(s.Command)
	from, hasRegistry := registries[program]
	if !hasRegistry {
		return ""
	}
	unrestricted := s.Network.Mode == "full" || s.Job.Policy.Sandbox == string(grants.DangerFullAccess)
	if unrestricted || from.isAllowed(s.Network.ReachList) {
		return ""
	}
	return fmt.Sprintf(" %s fetches a package that is not installed from %s, which this server may not reach. Open it in the job: mcp_servers: {%s: {network: {allow: [{preset: %s}]}}}.", program, from.hosts[0], s.name, from.preset)
}

// isAllowed reports whether the list of reachable hosts contains all hosts of the registry. It returns true if the
// list cannot be read, since that error is reported elsewhere.
func (r registry) isAllowed(readList func() (reach.List, error)) bool {
	list, err := readList()
	if err != nil {
		return true
	}
	for _, host := range r.hosts {
		if _, allowed := list.EntryFor(reach.Target{Protocol: reach.HTTPS, Name: host, Port: 443}); !allowed {
			return false
		}
	}
	return true
}
