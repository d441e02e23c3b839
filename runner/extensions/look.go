package extensions

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/mcp"
	"github.com/agent-ci/agent-ci/tools/search"
)

// Looked is what a server says of itself here, or why it does not come.
type Looked struct {
	Name     string
	Required bool
	List     mcp.List
	Offered  []mcp.Offered
	Deferred bool // the model would have to look for its tools
	Err      error
}

// Look starts all servers as a run would, asks what they offer, and ends them. Nothing is
// recorded.
func (s *Servers) Look(ctx context.Context) ([]Looked, error) {
	found := make([]Looked, len(s.all))
	var starting sync.WaitGroup
	for i, one := range s.all {
		one.mu.Lock()
		one.quiet = true
		one.mu.Unlock()
		starting.Go(func() {
			err := one.open(ctx)
			found[i] = Looked{Name: one.name, Required: one.Required, Err: err}
			if err != nil {
				stop := stopOf(one.name, err)
				stop.Message = one.Record.Redact(strings.TrimSuffix(stop.Message, ".") + "." + one.lastWords())
				found[i].Err = stop
				return
			}
			found[i].List = *one.frozen
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
	return found, s.describe(found)
}

// describe adds to what was found how the model would be told of it.
func (s *Servers) describe(found []Looked) error {
	offered, err := s.offer()
	if err != nil {
		return err
	}
	var all []search.Candidate
	for _, tool := range s.Job.Tools.Dynamic {
		all = append(all, search.Candidate{Spec: tools.Spec{Name: tool.Name}, Defer: tool.Defer})
	}
	for _, tool := range offered {
		all = append(all, search.Candidate{Spec: tool.Spec, Defer: s.Job.MCPServers[tool.Server].Defer})
	}
	deferred := search.Deferred(all)
	for i := range found {
		for _, tool := range offered {
			if tool.Server == found[i].Name {
				found[i].Offered = append(found[i].Offered, tool)
			}
		}
		found[i].Deferred = slices.ContainsFunc(deferred, func(c search.Candidate) bool {
			return slices.ContainsFunc(found[i].Offered, func(o mcp.Offered) bool { return o.Spec.Name == c.Spec.Name })
		})
	}
	return nil
}
