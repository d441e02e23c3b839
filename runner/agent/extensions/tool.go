package extensions

import "github.com/agent-ci/agent-ci/tools"

// Tool is a tool of an MCP server, the job or the embedding program, for the model.
type Tool struct {
	tools.Tool
	Source string // who offers it, such as "this job"
	Defer  bool   // the model has to search for it, however few tools there are
}
