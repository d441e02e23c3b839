package job

import (
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/task/config"
)

func TestFillsDefaultsOfMCPServers(t *testing.T) {
	job := mustLoad(t,
		jobFile(start+"mcp_servers: {docs: {command: docs, tools: [search], env: {pass: [DOCS_TOKEN]}}}\n"),
		config.SetLayer("mcp_servers.docs.start_timeout=5s"),
	)
	want := map[string]MCPServer{"docs": {
		Command: "docs", Args: []string{}, Tools: []string{"search"}, Deny: []string{}, Required: true, Headers: map[string]string{},
		Env:          ServerEnv{Pass: []string{"DOCS_TOKEN"}, Set: map[string]string{}},
		StartTimeout: mustDuration(t, "5s"), ToolTimeout: mustDuration(t, "2m"), Network: Network{Mode: "loopback"}, Workspace: "none",
	}}
	must.Same(t, want, job.MCPServers, "servers")
}

func TestRefusesInvalidMCPServers(t *testing.T) {
	for servers, want := range map[string]string{
		"{a: {tools: [x]}}": "mcp_servers.a.command: is missing",
		"{a: {command: x}}": "mcp_servers.a.tools: is missing",
		"{a: {command: npx -y @org/foo, args: [/data], tools: [y]}}":                                                       `mcp_servers.a.command: has a program and its arguments in one word, which no shell takes apart; write command: npx, args: [-y, "@org/foo", /data].`,
		"{a: {command: $HOME/x, tools: [y]}}":                                                                              "mcp_servers.a.command: begins with $HOME, and no shell fills that in; write command: ~/x, args: []",
		"{a: {command: ~root/x, tools: [y]}}":                                                                              "mcp_servers.a.command: begins with ~ and is not below ~/",
		"{a: {command: ~/../x, tools: [y]}}":                                                                               "mcp_servers.a.command: must be a path without",
		"{a: {command: x, tools: []}}":                                                                                     "mcp_servers.a.tools: is an empty list; give at least one",
		"{a: {command: x, tools: '*'}}":                                                                                    "mcp_servers.a.tools: must be a list",
		"{a: {command: x, tools: ['*', y]}}":                                                                               `mcp_servers.a.tools: has "*" beside others`,
		"{a: {command: x, tools: [y], deny: [y]}}":                                                                         "mcp_servers.a.deny[0]: is also in tools",
		"{a: {command: x, tools: ['*'], deny: ['*']}}":                                                                     "mcp_servers.a.deny[0]: must be the name of a tool",
		"{a: {command: x, url: 'https://a.example.com', tools: [y]}}":                                                      "mcp_servers.a.url: does not go with command",
		"{a: {url: 'https://a.example.com', tools: [y], args: [z]}}":                                                       "mcp_servers.a.args: needs command",
		"{a: {url: 'https://a.example.com', tools: [y], cwd: z}}":                                                          "mcp_servers.a.cwd: needs command",
		"{a: {url: 'https://a.example.com', tools: [y], env: {pass: [Z]}}}":                                                "mcp_servers.a.env.pass: needs command",
		"{a: {url: 'https://a.example.com', tools: [y], env: {set: {Z: z}}}}":                                              "mcp_servers.a.env.set: needs command",
		"{a: {url: 'https://a.example.com', tools: [y], network: none}}":                                                   "mcp_servers.a.network: needs command",
		"{a: {url: 'https://a.example.com', tools: [y], workspace: read}}":                                                 "mcp_servers.a.workspace: needs command",
		"{a: {command: x, tools: [y], headers: {A: b}}}":                                                                   "mcp_servers.a.headers: needs url",
		"{a: {command: x, tools: [y], bearer_token_env: T}}":                                                               "mcp_servers.a.bearer_token_env: needs url",
		`{a: {url: 'https://a.example.com', tools: [y], headers: {A: "b\nc"}}}`:                                            "mcp_servers.a.headers.A: must be one line without control characters",
		"{a: {url: 'ftp://a.example.com', tools: [y]}}":                                                                    "mcp_servers.a.url: must be",
		"{a: {url: 'http://93.184.216.34/mcp', tools: [y]}}":                                                               "mcp_servers.a.url: is http to a public host",
		"{a: {url: 'http://example.com/mcp', tools: [y]}}":                                                                 "mcp_servers.a.url: is http to a public host",
		"{a: {url: 'https://u:p@a.example.com', tools: [y]}}":                                                              "mcp_servers.a.url: must not have a user",
		"{a: {url: 'https://a.example.com/#x', tools: [y]}}":                                                               "mcp_servers.a.url: must not have a fragment",
		"{a: {command: x, tools: [y], env: {pass: [GITHUB_TOKEN]}}}":                                                       "mcp_servers.a.env.pass[0]: GITHUB_TOKEN is a credential",
		"{a: {command: x, tools: [y], env: {pass: [openai_api_key]}}}":                                                     "mcp_servers.a.env.pass[0]: openai_api_key is a credential",
		"{a: {command: x, tools: [y], env: {pass: [A], set: {A: b}}}}":                                                     "mcp_servers.a.env.pass[0]: A is also set",
		"{a: {command: x, tools: [y], env: {set: {AGENT_CI_X: b}}}}":                                                       "mcp_servers.a.env.set: AGENT_CI_X is a variable that agent-ci sets",
		"{a: {url: 'https://a.example.com', tools: [y], bearer_token_env: GH_TOKEN}}":                                      "mcp_servers.a.bearer_token_env: GH_TOKEN is a credential",
		"{a: {url: 'https://a.example.com', tools: [y], bearer_token_env: 'a b'}}":                                         "mcp_servers.a.bearer_token_env: must be a variable's name",
		"{a: {url: 'https://a.example.com', tools: [y], bearer_token_env: T, headers: {authorization: x}}}":                "mcp_servers.a.bearer_token_env: does not go with a header",
		"{a: {url: 'https://a.example.com', tools: [y], bearer_token_env: T}}\npolicy: {env: {pass: [T]}}":                 "mcp_servers.a.bearer_token_env: T is also in policy.env.pass",
		"{a: {command: ../x, tools: [y]}}":                                                                                 "mcp_servers.a.command: must not lead out",
		"{a: {command: ./, tools: [y]}}":                                                                                   "mcp_servers.a.command: is a folder",
		"{a: {command: x, tools: [y], cwd: z, workspace: read, env: {pass: [A]}}}":                                         "mcp_servers.a.cwd: does not go with env.pass",
		"{a: {command: x, tools: [y], env: {pass: [A]}}}\npolicy: {env: {pass: [A]}}":                                      "mcp_servers.a.env.pass[0]: A is also in policy.env.pass",
		"{a: {command: x, tools: [y], env: {pass: [A]}}}\npolicy: {secrets: [{name: A, hosts: [a.example.com]}]}":          "mcp_servers.a.env.pass[0]: A is also a secret of policy.secrets",
		"{a: {command: x, tools: [y], env: {pass: [A]}}}\npolicy: {secrets: [{name: B, from: A, hosts: [a.example.com]}]}": "mcp_servers.a.env.pass[0]: A is also a secret of policy.secrets",
		"{a: {command: /usr//bin/x, tools: [y]}}":                                                                          "mcp_servers.a.command: must be a path without",
		"{a: {command: x, tools: [y], cwd: z}}":                                                                            "mcp_servers.a.cwd: needs workspace",
		"{a: {command: x, tools: [y], cwd: ../z, workspace: read}}":                                                        "mcp_servers.a.cwd: must",
		"{a: {command: x, tools: [y], workspace: all}}":                                                                    `mcp_servers.a.workspace: "all" is not one of`,
		"{a: {command: x, tools: [y], network: {allow: ['*']}}}":                                                           "mcp_servers.a.network.allow[0]",
		"{a: {command: x, tools: [y], workspace: write}}\npolicy: {sandbox: read-only}":                                    "mcp_servers.a.workspace: is write",
		"{a: {command: x, tools: [y], env: {pass: [Z]}}}\npolicy: {sandbox: danger-full-access}":                           "mcp_servers.a.env.pass: gives the server",
		"{a: {command: x, tools: [y], network: {allow: [a.example.com]}}}\npolicy: {sandbox: danger-full-access}":          "mcp_servers.a.network: is a list of hosts",
		"{'a b': {command: x, tools: [y]}}":                                                                                "this name must be",
		"{a: {comand: x, tools: [y]}}":                                                                                     "unknown key; did you mean mcp_servers.a.command",
	} {
		wantProblem(t, "mcp_servers: "+servers, want)
	}
}

func TestAcceptsPathsAsServerPrograms(t *testing.T) {
	for _, program := range []string{"npx", "~/.local/bin/server", "${HOME}/server", "./my tools/server", "/opt/My Tools/server", "~/My Tools/server"} {
		mustLoad(t, jobFile(start+"mcp_servers: {a: {command: '"+program+"', tools: ['*']}}\n"))
	}
}

func TestAllowsPlainHTTPToPrivateServers(t *testing.T) {
	for _, at := range []string{"http://127.0.0.1:8080/mcp", "http://[::1]/mcp", "http://10.1.2.3/mcp", "http://tools.internal/mcp", "https://a.example.com/mcp"} {
		mustLoad(t, jobFile(start+"mcp_servers: {a: {url: '"+at+"', tools: ['*']}}\n"))
	}
}
