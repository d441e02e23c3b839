package tools

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/tools/dialect"
	"github.com/agent-ci/agent-ci/tools/schema"
)

// Registry holds the tools of a run, in the order in which they were given.
type Registry struct {
	tools  []*entry
	byName map[string]*entry
}

// entry is a tool and what checks and refuses its calls.
type entry struct {
	Tool
	schema *schema.Schema
	denied string // the words that refuse it, or empty
}

// New makes a registry. It panics when two tools have one name.
func New(tools ...Tool) *Registry {
	r := &Registry{byName: make(map[string]*entry, len(tools))}
	for _, tool := range tools {
		e := &entry{Tool: tool, schema: schema.New(accepted(tool.Spec))}
		if _, twice := r.byName[e.Spec.Name]; twice {
			panic("tools: two tools are named " + e.Spec.Name)
		}
		r.tools = append(r.tools, e)
		r.byName[e.Spec.Name] = e
	}
	return r
}

func accepted(spec Spec) json.RawMessage {
	switch {
	case spec.Accepts != nil:
		return spec.Accepts
	case spec.Parameters != nil:
		return spec.Parameters
	}
	return inputSchema
}

// takesText says whether the tool's Run gets text in place of a JSON object.
func (e *entry) takesText() bool { return e.Spec.Parameters == nil && e.Spec.Accepts == nil }

// Restrict narrows what may be called, by names of tools or of their aliases: nothing
// but allow, unless that is empty, and nothing of deny. The error names what no tool
// is called.
func (r *Registry) Restrict(allow, deny []string) error {
	allowed, err := r.named(allow)
	if err != nil {
		return fmt.Errorf("tools.allow: %w", err)
	}
	denied, err := r.named(deny)
	if err != nil {
		return fmt.Errorf("tools.deny: %w", err)
	}
	for _, e := range r.tools {
		switch {
		case denied[e]:
			e.denied = fmt.Sprintf("%s is switched off for this run by tools.deny in the job file. Go on without it.", e.Spec.Name)
		case len(allowed) > 0 && !allowed[e]:
			e.denied = fmt.Sprintf("%s is not among the tools that tools.allow in the job file names. Go on without it.", e.Spec.Name)
		default:
			e.denied = ""
		}
	}
	return nil
}

func (r *Registry) named(names []string) (map[*entry]bool, error) {
	found := make(map[*entry]bool, len(names))
	for _, name := range names {
		e := r.find(name, nil)
		if e == nil {
			return nil, fmt.Errorf("there is no tool %q; the tools are %s", name, strings.Join(r.Names(), ", "))
		}
		found[e] = true
	}
	return found, nil
}

// Names lists the tools that may be called, in the registry's order.
func (r *Registry) Names() []string {
	var names []string
	for _, e := range r.tools {
		if e.denied == "" {
			names = append(names, e.Spec.Name)
		}
	}
	return names
}

// Denial is the words by which calls of the tool of that name are refused, or
// empty when they are not.
func (r *Registry) Denial(name string) string {
	if e := r.byName[name]; e != nil {
		return e.denied
	}
	return ""
}

// Specs returns what the model is told of the offered tools. The order is the
// registry's, whatever the order of offered, so that the request stays the same
// byte for byte. Names that no tool has, or that are denied, are left out.
func (r *Registry) Specs(offered []string) []Spec {
	var specs []Spec
	for _, e := range r.tools {
		if e.denied == "" && slices.Contains(offered, e.Spec.Name) {
			specs = append(specs, e.Spec)
		}
	}
	return specs
}

// find is the tool that answers to a name, which may be an alias; among several
// that an alias stands for, one of offered is taken first. It is nil for none.
func (r *Registry) find(name string, offered []string) *entry {
	name = ownName(name)
	if e := r.byName[name]; e != nil {
		return e
	}
	var first *entry
	for _, target := range dialect.Called(name) {
		e := r.byName[target]
		switch {
		case e == nil, e.Foreign:
		case slices.Contains(offered, target):
			return e
		case first == nil:
			first = e
		}
	}
	return first
}
