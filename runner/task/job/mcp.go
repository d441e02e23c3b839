package job

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/task/config"
)

// MCPServer is a server of the Model Context Protocol. The model may call its tools. It is either
// started from Command or reached at URL.
type MCPServer struct {
	Command        string            `json:"command" form:"one_line" about:"Program of a server on standard streams, in its own sandbox. A server has command or url. ~/ and ${HOME} are replaced."`
	Args           []string          `json:"args" form:"value" example:"[--stdio]" about:"Arguments of the program."`
	Cwd            string            `json:"cwd" form:"folder" about:"Folder of the work tree to start in, with workspace: read or write, without env.pass. Empty: a fresh tree of the base commit."`
	Env            ServerEnv         `json:"env" suggest:"env_key" about:"Variables of the server."`
	URL            string            `json:"url" form:"server_url" about:"Address of a streamable HTTP server. Its host is allowed. http works for this machine and its network only."`
	Headers        map[string]string `json:"headers" form:"header_value" names:"header_name" example:"{X-Team: build}" about:"More headers for every request. They appear in the transcript."`
	BearerTokenEnv string            `json:"bearer_token_env" form:"variable" about:"Name of the variable with the bearer token, never the token itself."`
	Tools          []string          `json:"tools" config:"required,nonempty" form:"one_line" example:"[search, fetch]" about:"Tools of the server that the model may call. [\"*\"]: all of them."`
	Deny           []string          `json:"deny" form:"one_line" example:"[delete_issue]" about:"Tools that the model may not call, with tools: [\"*\"]."`
	Required       bool              `json:"required" default:"true" about:"true: the run ends if the server or one of its tools is missing. false: it warns."`
	StartTimeout   Duration          `json:"start_timeout" default:"1m" about:"Time limit for the start, including the download of a package."`
	ToolTimeout    Duration          `json:"tool_timeout" default:"2m" about:"Time limit of a call."`
	Network        Network           `json:"network" suggest:"allow" values:"none|loopback|full" default:"loopback" example:"{allow: [api.example.com]}" about:"What the server reaches, as in policy.network."`
	Workspace      string            `json:"workspace" values:"none|read|write" default:"none" about:"Access of the server to the agent's work tree. Its writes count as the agent's."`
	Defer          bool              `json:"defer" about:"true: the model finds its tools by searching only."`
}

// ServerEnv configures the environment of a server.
type ServerEnv struct {
	Pass []string          `json:"pass" form:"variable" example:"[DOCS_TOKEN]" about:"Names of variables that it gets with the values of agent-ci's environment. Secrets are allowed: no other command sees them."`
	Set  map[string]string `json:"set" form:"value" names:"variable" example:"{LOG_LEVEL: warn}" about:"Variables that it gets with these values."`
}

// allTools in the list of a server's tools allows all of them.
const allTools = "*"

const maxMCPServers = 32

// checkMCPServers checks the keys of every server against each other.
func (d *validator) checkMCPServers() {
	for _, name := range slices.Sorted(maps.Keys(d.job.MCPServers)) {
		place, s := config.JoinPath("mcp_servers", name), d.job.MCPServers[name]
		if len(s.Tools) == 0 { // reported already
			continue
		}
		d.checkServerKind(place, s)
		d.checkServerProgram(place, s)
		d.checkServerCredentials(place, s)
		d.reportEach(place, mistake{len(s.Tools) > 1 && slices.Contains(s.Tools, allTools), "tools", `has "*" beside others; "*" alone stands for all`})
		for i, tool := range s.Deny {
			d.reportFirst(config.JoinPath(place, "deny", i),
				mistake{tool == allTools, "", "must be the name of a tool; remove the server if you want none of its tools"},
				mistake{slices.Contains(s.Tools, tool), "", "is also in tools; take it out of one of them"})
		}
		isReadOnly := d.job.Policy.Sandbox == "read-only" && s.Command != ""
		isUnconfined := d.job.Policy.Sandbox == "danger-full-access" && s.Command != ""
		d.reportFirst(place,
			mistake{isReadOnly && s.Workspace == "write", "workspace", "is write, and policy.sandbox is read-only"},
			mistake{isUnconfined && s.Network.HasList(), "network", "is a list of hosts, and nothing holds the server to it: policy.sandbox is danger-full-access"},
			mistake{isUnconfined && len(s.Env.Pass) > 0, "env.pass", "gives the server values that the agent's commands could read from it: policy.sandbox is danger-full-access"})
	}
}

// checkServerKind rejects keys of started servers beside url, and keys of remote servers beside command.
func (d *validator) checkServerKind(place string, s MCPServer) {
	started, remote := s.Command != "", s.URL != ""
	if started && remote {
		d.Report(config.JoinPath(place, "url"), "does not go with command; give only one of them")
		return
	}
	const ofCommand = "needs command, which this server does not have; leave it out"
	const ofURL = "needs url, which this server does not have; leave it out"
	d.reportEach(place,
		mistake{!started && !remote && !d.HasProblemBelow(config.JoinPath(place, "url")), "command", "is missing; give command, or url for a server at an address"},
		mistake{remote && len(s.Args) > 0, "args", ofCommand},
		mistake{remote && s.Cwd != "", "cwd", ofCommand},
		mistake{remote && len(s.Env.Pass) > 0, "env.pass", ofCommand},
		mistake{remote && len(s.Env.Set) > 0, "env.set", ofCommand},
		mistake{remote && d.IsSet(config.JoinPath(place, "network")), "network", ofCommand},
		mistake{remote && s.Workspace != "none", "workspace", ofCommand},
		mistake{started && len(s.Headers) > 0, "headers", ofURL},
		mistake{started && s.BearerTokenEnv != "", "bearer_token_env", ofURL})
}

// checkServerProgram checks the paths of a server's program and working directory.
func (d *validator) checkServerProgram(place string, s MCPServer) {
	program := ExpandHome(s.Command, "/~")
	wrong := programMistake(append([]string{s.Command}, s.Args...), formatServerCommand)
	d.reportFirst(place,
		mistake{wrong != "", "command", wrong},
		mistake{isRelativePathOutside(program), "command", outOfRepository},
		mistake{program == "." || strings.HasSuffix(program, "/") || strings.HasSuffix(program, "/."), "command", "is a folder; give a program"},
		mistake{path.IsAbs(program) && path.Clean(program) != program, "command", "must be a path without //, ./ and ../, and not with / at its end"})
	d.reportFirst(place,
		mistake{s.Cwd != "" && s.Workspace == "none", "cwd", "needs workspace: read or write; without one the server is started in a fresh tree of the base commit"},
		mistake{s.Cwd != "" && len(s.Env.Pass) > 0, "cwd", "does not go with env.pass: many programs load code from their working directory, and the agent can write there; remove cwd, and pass the folder as an argument, ${AGENT_CI_WORKSPACE}"})
}

// checkServerCredentials rejects credentials of agent-ci itself, and credentials visible to commands.
func (d *validator) checkServerCredentials(place string, s MCPServer) {
	const own = " is a credential of agent-ci itself, which servers never get; give the server its own under another name"
	isPassed := func(name string) bool { return slices.Contains(d.job.Policy.Env.Pass, name) }
	for i, name := range s.Env.Pass {
		_, set := s.Env.Set[name]
		isSecret := slices.ContainsFunc(d.job.Policy.Secrets, func(secret Secret) bool { return cmp.Or(secret.From, secret.Name) == name })
		d.reportFirst(config.JoinPath(place, "env.pass", i),
			mistake{d.isOwnCredential(name), "", name + own},
			mistake{set, "", name + " is also set by env.set of this server"},
			mistake{isPassed(name), "", name + " is also in policy.env.pass, so commands would see the server's value; remove it from one of them"},
			mistake{isSecret, "", name + " is also a secret of policy.secrets, which reaches its hosts alone; give the server one of its own under another name"})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env.Set)) {
		d.reportEach(place, mistake{strings.HasPrefix(strings.ToUpper(name), "AGENT_CI_"), "env.set", name + " is a variable that agent-ci sets; choose another"})
	}
	if name := s.BearerTokenEnv; name != "" {
		d.reportFirst(config.JoinPath(place, "bearer_token_env"),
			mistake{d.isOwnCredential(name), "", name + own},
			mistake{isPassed(name), "", name + " is also in policy.env.pass, so commands would see the token"},
			mistake{hasAuthorization(s.Headers), "", "does not go with a header " + headerAuthorization + "; leave the header out"})
	}
}

func (d *validator) isOwnCredential(name string) bool {
	return d.isCredential(name) || slices.ContainsFunc([]string{d.job.PullRequest.Commit.KeyEnv, "OPENAI_ADMIN_KEY", "CODEX_API_KEY"}, func(own string) bool { return strings.EqualFold(own, name) })
}

func hasAuthorization(headers map[string]string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(headers)), func(header string) bool { return strings.EqualFold(header, headerAuthorization) })
}
