package extensions

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/mcp"
	"github.com/agent-ci/agent-ci/tools/search"
)

// ServerDescription is what a server offers, or why that is unknown.
type ServerDescription struct {
	Name     string
	Required bool
	List     mcp.List
	Offered  []mcp.Offered
	Deferred bool // the model has to search for its tools
	// Unknown says why the server could not be tried here. Err is why it failed. Both are empty on success.
	Unknown string
	Err     error
}

// DescribeAll starts all servers as a run does, asks for their tools, and stops them. It records nothing.
func (s *Servers) DescribeAll(ctx context.Context) ([]ServerDescription, error) {
	descriptions := make([]ServerDescription, len(s.all))
	var starting sync.WaitGroup
	for i, srv := range s.all {
		srv.mu.Lock()
		srv.unreported = true
		srv.mu.Unlock()
		starting.Go(func() {
			err := srv.startSession(ctx)
			descriptions[i] = ServerDescription{Name: srv.name, Required: srv.Required, Err: err}
			switch {
			case err == nil:
				descriptions[i].List = *srv.firstList
			case sandbox.IsMissing(err) && len(s.Job.Setup) > 0: // setup commands may install it
				descriptions[i].Err = nil
				descriptions[i].Unknown = srv.Record.Redact(fmt.Sprintf("its program %s is not here yet; the setup commands of the job may install it, and only a run has these run", srv.Command))
			default:
				descriptions[i].Err = srv.startFailure(err)
			}
		})
	}
	starting.Wait()
	err := s.Close()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	return descriptions, s.describe(descriptions)
}

// startFailure turns the error of a server's start into one with hints for the user of DescribeAll.
func (s *server) startFailure(err error) *outcome.Stop {
	stop := stopOf(s.name, err)
	message := strings.TrimSuffix(stop.Message, ".") + "." + s.hint(stop) + s.lastWords()
	if len(s.Job.Setup) > 0 {
		message += " The setup commands of the job were not run for this look."
	}
	stop.Message = s.Record.Redact(message)
	return stop
}

// describe sets Offered and Deferred in each description. Offered lists the server's tools for the model.
// Deferred means that the model finds some of them only by searching.
func (s *Servers) describe(descriptions []ServerDescription) error {
	offered, err := s.namedTools()
	if err != nil {
		return err
	}
	var all []search.Candidate
	for _, tool := range s.Job.Tools.Dynamic {
		all = append(all, search.Candidate{Tool: tools.Tool{Spec: tools.Spec{Name: tool.Name}}, Defer: tool.Defer})
	}
	for _, tool := range offered {
		all = append(all, s.withSource(tool, tools.Tool{Spec: tool.Spec}))
	}
	isDeferred := map[string]bool{} // by name
	for _, tool := range search.Deferred(all) {
		isDeferred[tool.Spec.Name] = true
	}
	for i := range descriptions {
		d := &descriptions[i]
		for _, tool := range offered {
			if tool.Server == d.Name {
				d.Offered = append(d.Offered, tool)
				d.Deferred = d.Deferred || isDeferred[tool.Spec.Name]
			}
		}
	}
	return nil
}
