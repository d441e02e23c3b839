package worker

import (
	"reflect"
	"slices"

	"github.com/agent-ci/agent-ci/runner/agent/extensions"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/search"
)

// outsiders are tools from outside agent-ci.
type outsiders struct {
	all      []extensions.Tool
	deferred map[string]bool // those that the model has to look for, by name
	names    []string        // of these, in order
	search   string          // by which tool it looks for them; empty where there is none
	finders  []tools.Tool    // both tools by which models look for others; none where there is none to be found
}

// outside returns a toolbox's tools from outside agent-ci. Tools of the job and the embedding
// program are known at once, those of servers after their start.
func (a *Agent) outside(box *toolbox, outputs *tools.Outputs) (outsiders, error) {
	all := a.dynamic.Told()
	if box.jobs != nil {
		all = box.jobs.Tools(outputs)
	}
	all = append(all, a.servers.Tools()...)
	for _, tool := range a.Tools {
		tool.Foreign = true
		all = append(all, extensions.Tool{Tool: tool, From: "the program"})
	}
	for i, tool := range all {
		if words, changed := a.hooked.descriptions[tool.Spec.Name]; changed {
			all[i].Spec.Description = words
		}
	}
	o := outsiders{all: all}
	allowed := a.allowed(all)
	deferred := search.Deferred(candidates(allowed))
	switch {
	case len(deferred) == 0:
		return o, nil
	case a.suits.Code: // scripts look for them
		o.deferFrom(deferred)
		return o, nil
	case slices.ContainsFunc(a.Job.Tools.Deny, search.Names) && len(allowed) > search.MostOffered:
		return o, outcome.Stopf(outcome.InvalidInput, "too_many_tools",
			"tools.deny has the tool that searches for others (%s, or %s), and there are %d tools of servers and the job, and a model gets at most %d; remove the name from tools.deny, or offer fewer by tools.allow.",
			search.BuiltinName, search.FunctionName, len(allowed), search.MostOffered)
	case slices.ContainsFunc(a.Job.Tools.Deny, search.Names):
		return o, nil
	}
	o.deferFrom(deferred)
	o.finders, o.search = a.finders(deferred), search.FunctionName
	if a.Model.Searches() {
		o.search = search.BuiltinName
	}
	return o, nil
}

func (o *outsiders) deferFrom(deferred []search.Candidate) {
	o.deferred = map[string]bool{}
	for _, c := range deferred {
		o.deferred[c.Spec.Name] = true
		o.names = append(o.names, c.Spec.Name)
	}
}

// finding caches the model's search tools.
type finding struct {
	deferred []search.Candidate // that they find
	tools    []tools.Tool
}

// finders returns the search tools. It rebuilds them if the deferred tools changed, rarely more
// than once per run.
func (a *Agent) finders(deferred []search.Candidate) []tools.Tool {
	if !reflect.DeepEqual(a.finding.deferred, deferred) {
		a.finding = finding{deferred, search.Tools(deferred)}
	}
	return a.finding.tools
}

// allowed returns the tools allowed by the job.
func (a *Agent) allowed(all []extensions.Tool) []extensions.Tool {
	allow, deny := a.Job.Tools.Allow, a.Job.Tools.Deny
	return slices.DeleteFunc(slices.Clone(all), func(t extensions.Tool) bool {
		return slices.Contains(deny, t.Spec.Name) || len(allow) > 0 && !slices.Contains(allow, t.Spec.Name)
	})
}

func candidates(all []extensions.Tool) []search.Candidate {
	found := make([]search.Candidate, len(all))
	for i, t := range all {
		found[i] = search.Candidate{Spec: t.Spec, From: t.From, Defer: t.Defer}
	}
	return found
}

// tools returns all tools, including search tools.
func (o outsiders) tools() []tools.Tool {
	all := make([]tools.Tool, len(o.all))
	for i, t := range o.all {
		all[i] = t.Tool
	}
	return append(all, o.finders...)
}

// offered adds tools that need no search, and the search tool, to own. Listing a tool in
// tools.allow does not offer it.
func (o outsiders) offered(own []string) []string {
	offered := slices.DeleteFunc(own, func(name string) bool { return o.deferred[name] || search.Names(name) })
	for _, t := range o.all {
		if !o.deferred[t.Spec.Name] {
			offered = append(offered, t.Spec.Name)
		}
	}
	if o.search != "" {
		offered = append(offered, o.search)
	}
	return offered
}
