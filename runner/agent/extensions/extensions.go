package extensions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/mcp"
	"github.com/agent-ci/agent-ci/tools/search"
)

// Options configure the MCP servers of a run.
type Options struct {
	Record        *record.Record
	Sandboxes     *confine.Sandboxes
	Job           *job.Job
	Environ       settings.Environment // the environment of agent-ci itself
	WorkDir       string               // the workspace folder, for servers that have the workspace
	ReservedNames []string             // names that tools of servers must not have
	// Recorded replaces all servers in a replay; nil otherwise.
	Recorded *Recorded
}

// Servers are the MCP servers of a run. Only their tools are safe for concurrent use.
type Servers struct {
	Options
	all        []*server     // sorted by name
	offered    []mcp.Offered // the tools offered to the model, once toolsFixed
	toolsFixed bool
}

// New returns the servers of a run. It starts none.
func New(o Options) *Servers {
	s := &Servers{Options: o}
	for _, name := range slices.Sorted(maps.Keys(o.Job.MCPServers)) {
		s.all = append(s.all, &server{Options: &s.Options, MCPServer: o.Job.MCPServers[name], name: name})
	}
	return s
}

// RequireSame makes the servers of a resumed run offer the recorded tools again. A server that did not start before
// stays unavailable, unless it is required now.
func (s *Servers) RequireSame(earlier []transcript.MCPServer) error {
	for _, recorded := range earlier {
		srv := s.serverNamed(recorded.Name)
		if srv == nil || s.toolsFixed {
			continue
		}
		if recorded.File == "" { // it did not start
			if !srv.Required {
				srv.lostReason = "It was not there when the run began."
			}
			continue
		}
		list, err := ReadList(s.Record.Directory, recorded)
		if err != nil {
			return outcome.Stopf(outcome.InvalidInput, "not_resumable", "The run cannot be resumed: %s; start a new run.", outcome.WithoutFullStop(err)).Because(err)
		}
		srv.firstList = &list
	}
	return nil
}

// Start starts the servers that do not run, in parallel. box is the agent's sandbox. The first Start fixes the set of
// tools: servers started later must offer the same ones.
func (s *Servers) Start(ctx context.Context, box *sandbox.Sandbox) error {
	if s.Recorded != nil {
		return s.fixTools()
	}
	failed := make([]error, len(s.all))
	var starting sync.WaitGroup
	for i, srv := range s.all {
		srv.agentSandbox = box
		if srv.liveSession() != nil || srv.lossReason() != "" {
			continue
		}
		starting.Go(func() { failed[i] = srv.startForAttempt(ctx) })
	}
	starting.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for i, srv := range s.all {
		if err := srv.settleStart(failed[i]); err != nil {
			return err
		}
	}
	return s.fixTools()
}

// fixTools decides which tools the model can call and, except in a replay, records them. Later calls do nothing.
func (s *Servers) fixTools() (err error) {
	if s.toolsFixed || len(s.all) == 0 {
		return nil
	}
	s.toolsFixed = true
	if s.offered, err = s.namedTools(); err != nil {
		return err
	}
	if s.Recorded != nil { // a replay
		return nil
	}
	for _, srv := range s.all {
		if err := srv.recordReady(s.offered); err != nil {
			return err
		}
	}
	s.warnOfUnchecked()
	return nil
}

// namedTools returns the servers' tools with the names that the model sees.
func (s *Servers) namedTools() ([]mcp.Offered, error) {
	offered, err := mcp.Offer(s.firstLists(), s.ReservedNames)
	if err != nil {
		return nil, outcome.Stopf(outcome.ExtensionFailed, string(mcp.ReasonProtocol), "The tools of the servers (mcp_servers) can't be offered: %s.", outcome.WithoutFullStop(err)).Because(err)
	}
	return offered, nil
}

// warnOfUnchecked warns of tools whose arguments agent-ci cannot fully check.
func (s *Servers) warnOfUnchecked() {
	var names []string
	for _, tool := range s.offered {
		if tool.Unchecked != "" {
			names = append(names, tool.Spec.Name)
		}
	}
	if len(names) == 0 {
		return
	}
	s.Record.Warn("mcp_unchecked", "agent-ci can't fully check the arguments of these tools, since it does not know parts of their schemas; their servers must: %s.", clip.Some(names, 10))
}

// firstLists returns the first tool list of each server.
func (s *Servers) firstLists() (all []mcp.List) {
	if s.Recorded != nil {
		return s.Recorded.Lists
	}
	for _, srv := range s.all {
		if srv.firstList != nil {
			all = append(all, *srv.firstList)
		}
	}
	return all
}

// Tools returns the tools of the servers, followed by the tools for resources if a server has resources. In a replay,
// s.Recorded answers their calls.
func (s *Servers) Tools() (all []search.Candidate) {
	for _, offered := range s.offered {
		if s.Recorded != nil {
			all = append(all, s.withSource(offered, tools.Tool{Spec: offered.Spec, Foreign: true, Mutates: true, Run: s.Recorded.Run}))
			continue
		}
		if srv := s.serverNamed(offered.Server); srv != nil {
			all = append(all, s.withSource(offered, srv.tool(offered)))
		}
	}
	if !slices.ContainsFunc(s.firstLists(), func(list mcp.List) bool { return list.Resources }) {
		return all
	}
	for _, tool := range mcp.ResourceTools(s.resources) {
		if s.Recorded != nil {
			tool.Run = s.Recorded.Run
		}
		all = append(all, search.Candidate{Tool: tool, Source: "MCP servers"})
	}
	return all
}

// withSource adds to a server's tool where it comes from and whether the model has to search for it.
func (s *Servers) withSource(offered mcp.Offered, tool tools.Tool) search.Candidate {
	return search.Candidate{Tool: tool, Source: "the MCP server " + offered.Server, Defer: s.Job.MCPServers[offered.Server].Defer}
}

// ToolsFixed reports whether the set of tools is final.
func (s *Servers) ToolsFixed() bool { return s.toolsFixed || len(s.Job.MCPServers) == 0 }

// MayBelongToUnstarted reports whether a server that has not started yet may offer a tool called name.
func (s *Servers) MayBelongToUnstarted(name string) bool {
	return strings.HasPrefix(name, "mcp__") || slices.ContainsFunc(mcp.ResourceTools(nil), func(t tools.Tool) bool { return t.Spec.Name == name })
}

// serverNamed returns the server called name, or nil.
func (s *Servers) serverNamed(name string) *server {
	for _, srv := range s.all {
		if srv.name == name {
			return srv
		}
	}
	return nil
}

// resources returns the servers that have resources.
func (s *Servers) resources() (all []mcp.Resources) {
	for _, list := range s.firstLists() {
		if srv := s.serverNamed(list.Server); srv != nil && list.Resources {
			all = append(all, mcp.Resources{Server: srv.name, Session: srv.sessionForCall})
		}
	}
	return all
}

// StopReason returns the error that ends the run if a required server ended and cannot be restarted, or nil.
func (s *Servers) StopReason() error {
	for _, srv := range s.all {
		if err := srv.stopIfLost(); err != nil {
			return err
		}
	}
	return nil
}

// EndAttempt stops the servers that depend on the agent's sandbox.
func (s *Servers) EndAttempt() error {
	return s.closeServers(func(srv *server) bool { return !srv.livesWithRun() })
}

// Close stops all servers.
func (s *Servers) Close() error {
	return s.closeServers(func(*server) bool { return true })
}

// closeServers stops the servers that selects accepts, in parallel because each may take a while.
func (s *Servers) closeServers(selects func(*server) bool) error {
	failed := make([]error, len(s.all))
	var ending sync.WaitGroup
	for i, srv := range s.all {
		if selects(srv) {
			ending.Go(func() { failed[i] = srv.close() })
		}
	}
	ending.Wait()
	return errors.Join(failed...)
}

// stopOf converts the error of a failed server to the error that ends the run. name is the server's name.
func stopOf(name string, err error) *outcome.Stop {
	if stop, isStop := errors.AsType[*outcome.Stop](err); isStop {
		return stop
	}
	if mcpError, isMCP := errors.AsType[*mcp.Error](err); isMCP {
		return outcome.Stopf(outcome.ExtensionFailed, string(mcpError.Reason), "%s.", outcome.Sentence(mcpError.Words)).Because(err)
	}
	return outcome.Stopf(outcome.ExtensionFailed, string(mcp.ReasonStart), "The server %s (mcp_servers) did not start: %s.", name, outcome.WithoutFullStop(err)).Because(err)
}

// extensionsFolder in the run directory holds the lists and logs of servers and of the embedding program's tools.
const extensionsFolder = "extensions"

// listFile returns the name of the file with the server's list of tools, relative to the run directory.
func (s *server) listFile() string { return fmt.Sprintf("%s/%s.json", extensionsFolder, s.name) }
