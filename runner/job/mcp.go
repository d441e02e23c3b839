package job

// MCPServer is a server of the Model Context Protocol whose tools the model may call: a
// Command that is started here, or one at a URL.
type MCPServer struct {
	Command        string            `json:"command"`
	Args           []string          `json:"args"`
	Cwd            string            `json:"cwd"` // slash-separated, below the root of the repository; "" for the root
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
	Protocol       string            `json:"protocol"`  // auto, or a revision
	Parallel       bool              `json:"parallel"`
	Defer          bool              `json:"defer"`
}

// AllTools stands in the list of a server's tools for all that it has.
const AllTools = "*"

// mostMCPServers is how many a job may have.
const mostMCPServers = 32

// mcpProtocols are the revisions that a server can be held to.
var mcpProtocols = []string{"auto", "2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

var (
	serverName = matching("a name: letters, digits, - and _", `[A-Za-z0-9][A-Za-z0-9_-]{0,39}`)
	argument   = &form{about: "an argument, without NUL", check: checkArgument}
)

// fitMCPServers checks what no key of a server can tell alone.
func (d *decoder) fitMCPServers() {}
