package job

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/task/config"
	"github.com/agent-ci/agent-ci/runner/task/form"
)

// MCPServer is a server of the Model Context Protocol. The model may call its tools. It is either
// started from Command or reached at URL.
type MCPServer struct {
	Command        string            `json:"command"`
	Args           []string          `json:"args"`
	Cwd            string            `json:"cwd"` // slash-separated, below the root of the agent's workspace; "" for the base tree
	Env            Env               `json:"env"`
	URL            string            `json:"url"`
	Headers        map[string]string `json:"headers"`
	BearerTokenEnv string            `json:"bearer_token_env"` // name of the variable, never the token
	Tools          []string          `json:"tools"`            // by the server's own names; AllTools for all
	Deny           []string          `json:"deny"`
	Required       bool              `json:"required"`
	StartTimeout   Duration          `json:"start_timeout"`
	ToolTimeout    Duration          `json:"tool_timeout"`
	Network        Network           `json:"network"`
	Workspace      string            `json:"workspace"` // none, read, write
	Defer          bool              `json:"defer"`
}

// AllTools in the list of a server's tools allows all of them.
const AllTools = "*"

// mostMCPServers is the maximum number of servers in a job.
const mostMCPServers = 32

var (
	serverURL  = &form.Form{Check: form.WebAddress("https://mcp.example.com/mcp", "bearer_token_env names the variable with the token", true), Pattern: `https?://.+`}
	serverName = form.Matching("a name: letters, digits, - and _", `[A-Za-z0-9][A-Za-z0-9_-]{0,39}`)
)

// fitMCPServers checks the keys of every server against each other.
func (d *checks) fitMCPServers() {
	for _, name := range slices.Sorted(maps.Keys(d.job.MCPServers)) {
		if d.MentionsExactly(config.Join("mcp_servers", name)) || d.MentionsExactly(config.Join("mcp_servers", name)+".tools") {
			continue // no mapping, or a required key is missing
		}
		of := mcpChecks{d, config.Join("mcp_servers", name), d.job.MCPServers[name]}
		of.kind()
		of.program()
		of.credentials()
		of.tools()
		of.confinement()
	}
}

// mcpChecks checks one server.
type mcpChecks struct {
	*checks
	path   string
	server MCPServer
}

func (c mcpChecks) wrong(key, message string) { c.checks.Wrong(config.Join(c.path, key), message) }

// kind rejects keys of started servers beside url, and keys of remote servers beside command.
func (c mcpChecks) kind() {
	s := c.server
	switch {
	case s.Command == "" && s.URL == "" && !c.Mentions(config.Join(c.path, "url")):
		c.wrong("command", "is missing; give command, or url for a server at an address")
	case s.Command != "" && s.URL != "":
		c.wrong("url", "does not go with command; give only one of them")
		return
	}
	const takes = "takes %s, which this server does not have; leave it out"
	ofCommand, ofURL := fmt.Sprintf(takes, "command"), fmt.Sprintf(takes, "url")
	here, there := s.URL == "", s.Command == ""
	c.WrongIf(!here && len(s.Args) > 0, config.Join(c.path, "args"), ofCommand)
	c.WrongIf(!here && s.Cwd != "", config.Join(c.path, "cwd"), ofCommand)
	c.WrongIf(!here && len(s.Env.Pass) > 0, config.Join(c.path, "env.pass"), ofCommand)
	c.WrongIf(!here && len(s.Env.Set) > 0, config.Join(c.path, "env.set"), ofCommand)
	c.WrongIf(!here && c.Given(config.Join(c.path, "network")), config.Join(c.path, "network"), ofCommand)
	c.WrongIf(!here && s.Workspace != "none", config.Join(c.path, "workspace"), ofCommand)
	c.WrongIf(!there && len(s.Headers) > 0, config.Join(c.path, "headers"), ofURL)
	c.WrongIf(!there && s.BearerTokenEnv != "", config.Join(c.path, "bearer_token_env"), ofURL)
}

// program checks the paths of a server's program and working directory.
func (c mcpChecks) program() {
	s := c.server
	program := AtHome(s.Command, "/~")
	switch wrong := misnamed(append([]string{s.Command}, s.Args...), ServerCommand); {
	case wrong != "":
		c.wrong("command", wrong)
	case strings.Contains(program, "/") && !path.IsAbs(program) && slices.Contains(strings.Split(program, "/"), ".."):
		c.wrong("command", "must not lead out of the repository: a relative path names a program of the base commit")
	case program == "." || strings.HasSuffix(program, "/") || strings.HasSuffix(program, "/."):
		c.wrong("command", "is a folder; give a program")
	case path.IsAbs(program) && path.Clean(program) != program:
		c.wrong("command", "must be a path without //, ./ and ../, and not with / at its end")
	}
	switch {
	case s.Cwd == "":
	case s.Workspace == "none":
		c.wrong("cwd", "takes workspace: read or write; without one the server is started in a fresh tree of the base commit")
	case len(s.Env.Pass) > 0:
		c.wrong("cwd", "does not go with env.pass: many programs load code from their working directory, and the agent can write there; remove cwd, and pass the folder as an argument, ${AGENT_CI_WORKSPACE}")
	}
}

// credentials keeps those of agent-ci itself from servers, and those of servers from commands.
func (c mcpChecks) credentials() {
	s := c.server
	for i, name := range s.Env.Pass {
		key := fmt.Sprintf("env.pass[%d]", i)
		_, set := s.Env.Set[name]
		switch {
		case c.ownCredential(name):
			c.wrong(key, name+" is a credential of agent-ci itself, which servers never get; give the server its own under another name")
		case set:
			c.wrong(key, name+" is also set by env.set of this server")
		case slices.Contains(c.job.Policy.Env.Pass, name):
			c.wrong(key, name+" is also in policy.env.pass, so commands would see the server's value; remove it from one of them")
		case slices.ContainsFunc(c.job.Policy.Secrets, func(secret Secret) bool { return cmp.Or(secret.From, secret.Name) == name }):
			c.wrong(key, name+" is also a secret of policy.secrets, which reaches its hosts alone; give the server one of its own under another name")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env.Set)) {
		if strings.HasPrefix(strings.ToUpper(name), "AGENT_CI_") {
			c.wrong("env.set", name+" is a variable that agent-ci sets; choose another")
		}
	}
	switch name := s.BearerTokenEnv; {
	case name == "":
	case c.ownCredential(name):
		c.wrong("bearer_token_env", name+" is a credential of agent-ci itself, which servers never get; give the server its own under another name")
	case slices.Contains(c.job.Policy.Env.Pass, name):
		c.wrong("bearer_token_env", name+" is also in policy.env.pass, so commands would see the token")
	case hasHeader(s.Headers, headerAuthorization):
		c.wrong("bearer_token_env", "does not go with a header "+headerAuthorization+"; leave the header out")
	}
}

func (d *checks) ownCredential(name string) bool {
	more := []string{d.job.PullRequest.Commit.KeyEnv, "OPENAI_ADMIN_KEY", "CODEX_API_KEY"}
	return d.isCredential(name) || slices.ContainsFunc(more, func(own string) bool { return strings.EqualFold(own, name) })
}

func hasHeader(headers map[string]string, name string) bool {
	for header := range headers {
		if strings.EqualFold(header, name) {
			return true
		}
	}
	return false
}

// tools checks the lists of a server's tools.
func (c mcpChecks) tools() {
	s := c.server
	c.WrongIf(len(s.Tools) > 1 && slices.Contains(s.Tools, AllTools), config.Join(c.path, "tools"), `has "*" beside others; "*" alone stands for all`)
	for i, name := range s.Deny {
		switch {
		case name == AllTools:
			c.wrong(fmt.Sprintf("deny[%d]", i), `must be the name of a tool; remove the server if you want none of its tools`)
		case slices.Contains(s.Tools, name):
			c.wrong(fmt.Sprintf("deny[%d]", i), "is also in tools; take it out of one of them")
		}
	}
}

// confinement rejects settings that policy.sandbox cannot enforce.
func (c mcpChecks) confinement() {
	s, policy := c.server, c.job.Policy
	if s.Command == "" {
		return
	}
	switch {
	case policy.Sandbox == "read-only" && s.Workspace == "write":
		c.wrong("workspace", "is write, and policy.sandbox is read-only")
	case policy.Sandbox == "danger-full-access" && s.Network.Listed():
		c.wrong("network", "is a list of hosts, and nothing holds the server to it: policy.sandbox is danger-full-access")
	case policy.Sandbox == "danger-full-access" && len(s.Env.Pass) > 0:
		c.wrong("env.pass", "gives the server values that the agent's commands could read from it: policy.sandbox is danger-full-access")
	}
}
