package tools

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/tools/dialect"
	"github.com/agent-ci/agent-ci/tools/schema"
)

// Registry holds the tools of a run in order.
type Registry struct {
	tools  []*entry
	byName map[string]*entry
}

// entry is a tool with its checks.
type entry struct {
	Tool
	schema  *schema.Schema
	refusal string // refusal of all calls, or ""
}

// New returns a registry. It panics if two tools have the same name.
func New(tools ...Tool) *Registry {
	r := &Registry{byName: make(map[string]*entry, len(tools))}
	for _, tool := range tools {
		e := &entry{Tool: tool, schema: schema.New(acceptedSchema(tool.Spec))}
		if _, twice := r.byName[e.Spec.Name]; twice {
			panic("tools: two tools are named " + e.Spec.Name)
		}
		r.tools = append(r.tools, e)
		r.byName[e.Spec.Name] = e
	}
	return r
}

// acceptedSchema returns the schema by which a tool's arguments are checked.
func acceptedSchema(spec Spec) json.RawMessage {
	switch {
	case spec.Accepts != nil:
		return spec.Accepts
	case spec.Parameters != nil:
		return spec.Parameters
	}
	return inputSchema
}

// takesText reports whether the tool's Run gets a text as input instead of a JSON object.
func (e *entry) takesText() bool { return e.Spec.Parameters == nil && e.Spec.Accepts == nil }

// Restrict switches tools off: those not in allow, unless it is empty, and those in deny, even if they are in allow. Both
// lists may contain names and aliases. It returns an error for an unknown name.
func (r *Registry) Restrict(allow, deny []string) error {
	allowed, err := r.entriesNamed(allow)
	if err != nil {
		return fmt.Errorf("tools.allow: %w", err)
	}
	denied, err := r.entriesNamed(deny)
	if err != nil {
		return fmt.Errorf("tools.deny: %w", err)
	}
	for _, e := range r.tools {
		switch {
		case denied[e]:
			e.refusal = fmt.Sprintf("%s is switched off for this run by tools.deny in the job file. Go on without it.", e.Spec.Name)
		case len(allowed) > 0 && !allowed[e]:
			e.refusal = fmt.Sprintf("%s is not among the tools that tools.allow in the job file names. Go on without it.", e.Spec.Name)
		default:
			e.refusal = ""
		}
	}
	return nil
}

// entriesNamed returns the set of the tools with these names or aliases. It returns an error for an unknown name.
func (r *Registry) entriesNamed(names []string) (map[*entry]bool, error) {
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

// Names returns the names of the tools that are not switched off, in order.
func (r *Registry) Names() []string {
	var names []string
	for _, e := range r.tools {
		if e.refusal == "" {
			names = append(names, e.Spec.Name)
		}
	}
	return names
}

// Denial returns the refusal of all calls of a tool that is switched off, or "".
func (r *Registry) Denial(name string) string {
	if e := r.byName[name]; e != nil {
		return e.refusal
	}
	return ""
}

// Specs returns the specs of the offered tools, without those that are unknown or switched off. They are in the
// registry's order, so that requests stay identical and can be cached.
func (r *Registry) Specs(offered []string) []Spec {
	var specs []Spec
	for _, e := range r.tools {
		if e.refusal == "" && slices.Contains(offered, e.Spec.Name) {
			specs = append(specs, e.Spec)
		}
	}
	return specs
}

// find returns the tool with this name or alias, or nil. If several tools have the alias, it prefers one of offered.
func (r *Registry) find(name string, offered []string) *entry {
	name = withoutNamespace(name)
	if e := r.byName[name]; e != nil {
		return e
	}
	var notOffered *entry
	for _, target := range dialect.NamesByAlias(name) {
		e := r.byName[target]
		switch {
		case e == nil, e.Foreign: // no tool of agent-ci has the alias
		case slices.Contains(offered, target):
			return e
		case notOffered == nil:
			notOffered = e
		}
	}
	return notOffered
}
