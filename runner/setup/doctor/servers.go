package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/agent-ci/agent-ci/runner/agent/extensions"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/place/sandboxcommand"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// Server describes an MCP server (mcp_servers) as a run on this machine would find it.
type Server struct {
	Name     string       `json:"name"`
	Ready    bool         `json:"ready"`
	Required bool         `json:"required"`
	Reason   string       `json:"reason,omitempty"` // of the outcome where it is not ready
	Why      string       `json:"why,omitempty"`
	Unknown  string       `json:"unknown,omitempty"` // why it was not examined
	Revision string       `json:"revision,omitempty"`
	Server   string       `json:"server,omitempty"` // as it calls itself
	Version  string       `json:"version,omitempty"`
	Deferred bool         `json:"deferred"` // the model would have to look for its tools
	Tools    []ServerTool `json:"tools"`
	Others   []string     `json:"others"` // tools that it has and the job does not allow
}

// ServerTool is a tool offered to the model.
type ServerTool struct {
	Name      string `json:"name"` // for the model
	Tool      string `json:"tool"` // the server's own name
	SHA256    string `json:"sha256"`
	Unchecked string `json:"unchecked,omitempty"` // by what of its schema arguments are not checked here
}

// DescribeServers starts the MCP servers of a job (or of the repository's defaults) as a run does, and
// returns their tools. An error means that nothing could be started.
func DescribeServers(ctx context.Context, o sandboxcommand.Options) (found []Server, returned error) {
	p, err := sandboxcommand.Prepare(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { returned = errors.Join(returned, p.Close()) }()
	found = []Server{}
	if len(p.Job.MCPServers) == 0 {
		return found, nil
	}
	if p.NoCheckout != nil { // a run would end, too
		return nil, workspace.CheckoutFailure(p.NoCheckout)
	}
	if err := settings.CheckServerSecrets(p.Environ, p.Job); err != nil {
		return nil, err
	}
	boxes, err := p.Sandboxes(nil)
	if err != nil {
		return nil, err
	}
	if p.Workspace.Checkout() != nil {
		boxes.BaseTree = p.Workspace.BaseTree()
	}
	if err := boxes.SettleConfinement(ctx); err != nil {
		return nil, err
	}
	if !boxes.AllowsConcurrent() { // the end of the agent's sandbox kills what servers leave behind
		agentBox, err := boxes.Open(ctx, confine.AgentPlace())
		if err != nil {
			return nil, err
		}
		defer func() { returned = errors.Join(returned, agentBox.Close()) }()
		if err := agentBox.Ready(); err != nil {
			return nil, err
		}
	}
	servers := extensions.New(extensions.Options{
		Record: p.Record, Sandboxes: boxes, Job: p.Job, Environ: p.Environ, WorkDir: p.Workspace.WorkDir(p.Job.Repository.Path),
	})
	all, err := servers.DescribeAll(ctx)
	if err != nil {
		return nil, fmt.Errorf("look at the servers of tools: %w", err)
	}
	for _, one := range all {
		found = append(found, describeServer(ctx, one))
	}
	return found, nil
}

// describeServer describes a server of tools and the tools that the job allows.
func describeServer(ctx context.Context, one extensions.ServerDescription) Server {
	s := Server{
		Name: one.Name, Ready: one.Err == nil && one.Unknown == "", Unknown: one.Unknown, Required: one.Required, Revision: one.List.Revision, Server: one.List.Name, Version: one.List.Version,
		Deferred: one.Deferred, Tools: []ServerTool{}, Others: []string{},
	}
	if one.Err != nil {
		stop := outcome.ForError(ctx, one.Err)
		s.Reason, s.Why = stop.Reason, stop.Message
	}
	for _, tool := range one.Offered {
		s.Tools = append(s.Tools, ServerTool{tool.Spec.Name, tool.Tool, tool.SHA256, tool.Unchecked})
	}
	for _, tool := range one.List.Tools {
		if !tool.Allowed {
			s.Others = append(s.Others, tool.Tool)
		}
	}
	return s
}
