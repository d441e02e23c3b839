package tools

import (
	"fmt"
	"slices"
)

// patchTool is the tool that programs have to be given before their commands may apply patches.
const patchTool = "apply_patch"

// searches find tools for the model, which programs know nothing of.
var searches = []string{"tool_search", "search_tool_bm25"}

// LetPrograms lets programs that the API runs call the tools that change nothing by their own
// hand, commands among them, and those of named; never what a model has to call itself. The error
// names what no tool is called.
func (r *Registry) LetPrograms(named []string) error {
	more, err := r.named(named)
	if err != nil {
		return fmt.Errorf("tools.programmatic: %w", err)
	}
	for _, e := range r.tools {
		e.Spec.Programs = (!e.Mutates || more[e]) && !e.onlyDirect() && !slices.Contains(searches, e.Spec.Name)
	}
	return nil
}

// Direct says whether a model has to call the tool of that name itself, as no script and no program
// can.
func (r *Registry) Direct(name string) bool {
	e := r.byName[name]
	return e != nil && e.onlyDirect()
}

// onlyDirect says whether a model has to call the tool itself.
func (e *entry) onlyDirect() bool {
	return e.Scripts || e.Spec.Namespace.Name != "" || slices.Contains(directOnly, e.Spec.Name)
}

// whyNotByProgram refuses a call of a program that it may not make.
func (d *Dispatcher) whyNotByProgram(t target) string {
	switch {
	case t.Call.Program == "":
		return ""
	case !t.entry.Spec.Programs:
		return t.Tool + " cannot be called from a program in this run. Call it yourself."
	case t.Mutates && !t.entry.Mutates && !d.programsPatch():
		return "The command applies a patch, which no program may do in this run. Call " + patchTool + " yourself."
	}
	return ""
}

func (d *Dispatcher) programsPatch() bool {
	e := d.Registry.byName[patchTool]
	return e != nil && e.Spec.Programs
}
