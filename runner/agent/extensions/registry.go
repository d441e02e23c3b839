package extensions

import (
	"fmt"
	"path"

	"github.com/agent-ci/agent-ci/policy/reach"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
)

// registry is where a program such as npx downloads packages that it starts.
type registry struct {
	preset string
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

// registryHint returns a sentence with the job lines that open the package registry of the server's program.
// It returns "" if the program uses none, or if the registry is open already.
func (s *server) registryHint() string {
	program := path.Base(s.Command)
	from, fetches := registries[program]
	if !fetches || s.Network.Mode == "full" || s.Job.Policy.Sandbox == string(grants.DangerFullAccess) || from.open(s.Network.ReachList) {
		return ""
	}
	return fmt.Sprintf(" %s fetches a package that is not installed from %s, which this server may not reach. Open it in the job: mcp_servers: {%s: {network: {allow: [{preset: %s}]}}}.", program, from.hosts[0], s.name, from.preset)
}

// open reports whether a list allows all hosts of the registry. A list that cannot be read counts as open,
// since its error is reported elsewhere.
func (r registry) open(list func() (reach.List, error)) bool {
	opened, err := list()
	if err != nil {
		return true
	}
	for _, host := range r.hosts {
		if _, is := opened.Allows(reach.Target{Protocol: reach.HTTPS, Name: host, Port: 443}); !is {
			return false
		}
	}
	return true
}
