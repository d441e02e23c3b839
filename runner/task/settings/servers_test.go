package settings

import (
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/secrets"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

func servers() *job.Job {
	return &job.Job{MCPServers: map[string]job.MCPServer{
		"docs":   {Command: "docs", Env: job.ServerEnv{Pass: []string{"DOCS_LOGIN", "LANG", "SHORT"}}},
		"remote": {URL: "https://a.example.com", BearerTokenEnv: "REMOTE"},
	}}
}

func TestFindsAndChecksServerSecrets(t *testing.T) {
	env := Environment{"DOCS_LOGIN=correct-horse", "LANG=en_GB.UTF-8", "SHORT=on", "REMOTE=battery-staple"}
	want := []secrets.Value{{Name: "DOCS_LOGIN", Secret: "correct-horse"}, {Name: "REMOTE", Secret: "battery-staple"}, {Name: "SHORT", Secret: "on"}} // which is told to be too short
	must.Same(t, want, ServerSecrets(env, servers()), "secrets")
	must.Do(t, CheckServerSecrets(env, servers()))
	for want, env := range map[string]Environment{
		"set REMOTE in agent-ci's environment":                  {"DOCS_LOGIN=correct-horse", "LANG=C", "SHORT=on"},
		"name another variable with mcp_servers.remote.bearer":  {"DOCS_LOGIN=correct-horse", "LANG=C", "SHORT=on", "REMOTE= "},
		"the value of REMOTE holds a line break, a quote":       {"DOCS_LOGIN=correct-horse", "LANG=C", "SHORT=on", `REMOTE="battery-staple"`},
		"needs LANG, which is not set":                          {"DOCS_LOGIN=correct-horse", "REMOTE=battery-staple", "SHORT=on"},
		"commands would see in the variable PIP_INDEX_URL":      {"LANG=C", "SHORT=on", "DOCS_LOGIN=correct-horse", "REMOTE=battery-staple", "PIP_INDEX_URL=https://a.example.com/battery-staple/"},
		"commands would see in the variable GOFLAGS; remove it": {"LANG=C", "SHORT=on", "DOCS_LOGIN=correct-horse", "REMOTE=battery-staple", "GOFLAGS=-ldflags=correct-horse"},
	} {
		must.Fail(t, want, CheckServerSecrets(env, servers()))
	}
}
