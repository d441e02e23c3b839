package verify

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/task/job"
)

func TestAdvisesOnNetworkAccess(t *testing.T) {
	for name, c := range map[string]struct {
		network           job.Network
		run, output, want string
	}{
		"go":                 {job.Network{Mode: "none"}, "go mod download", "go: x@v1: Get \"https://proxy.golang.org/x\": dial tcp: lookup proxy.golang.org: Temporary failure in name resolution", "policy.network, which is none. Give the setup command that fetches it the network {allow: [{preset: goproxy}]} (setup[].network)."},
		"npm":                {job.Network{}, "npm ci", "npm error code EAI_AGAIN\nnpm error request to https://registry.npmjs.org/left-pad failed", "{preset: npm}"},
		"pip, by its name":   {job.Network{Mode: "none"}, "pip install -r requirements.txt", "Failed to establish a new connection: [Errno -3] Temporary failure in name resolution", "{preset: pypi}"},
		"a proxy of a list":  {job.Network{Allow: []job.AllowedHost{{Host: "a.example"}}}, "cd x && cargo fetch", "failed to download: Proxy CONNECT aborted (HTTP 403)", "which lists no such host. Give the setup command that fetches it the network {allow: [{preset: cargo}]}"},
		"somebody's program": {job.Network{Mode: "loopback"}, "./fetch", "curl: (6) Could not resolve host: files.example", "which is loopback. Give the setup command that fetches it the hosts that it needs (setup[].network)."},
		"with a network":     {job.Network{Mode: "full"}, "npm ci", "ENOTFOUND", ""},
		"another failure":    {job.Network{Mode: "none"}, "npm ci", "missing script: build", ""},
		"a test of 403":      {job.Network{Mode: "none"}, "npm test", "expected 200, got 403", ""},
	} {
		if got := networkAdvice("policy.network", c.network, c.run, c.output); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}
