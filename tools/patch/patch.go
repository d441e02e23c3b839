// Package patch owns apply_patch, by which a model changes files. It knows the
// forms in which models call it and what they are told; the format is
// gitops/v4a's, how files are replaced gitops/v4a/tree's, and which paths may change
// is the caller's.
package patch

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/tools"
)

// Options say what a patch may change, and how the model calls.
type Options struct {
	Dir   tools.Folder // the working directory, where relative paths start
	Offer tools.Form   // in which the model is told to call
	// Written is for calls that are Written; there are none where it is nil.
	Written *Written
	// View is what commands see: a patch touches nothing else. It may be nil.
	View func() (*grants.View, error)
	// Protect says in words for the model why a path, slash-separated and
	// relative to Dir, must not change; empty means that it may. It may be nil.
	Protect func(path string) string
	// Ignored says whether git leaves out a file, slash-separated and relative to
	// Dir. It may be nil.
	Ignored func(path string) bool
	// Ask says in words for the model why a patch that may be applied is not to be; empty
	// refusal lets it be. Aside stands before what the model is told then. It may be nil.
	Ask func(ctx context.Context, edits []tree.Edit, diff string) (refusal, aside string)
	// Keep is given each patch that is about to be applied, as the model wrote
	// it. When it fails the patch is not applied. It may be nil.
	Keep func(text string) error
	// KeepDiff is given each other change that is about to be made, in git's format, and is like
	// Keep in all else.
	KeepDiff func(diff string) error
}

// Patcher applies patches, those of calls of its tool and those that come in other
// ways, by the same rules.
type Patcher struct{ options Options }

// New makes a Patcher.
func New(o Options) *Patcher { return &Patcher{o} }

// Tool makes the tool. Each call of it changes files.
func (p *Patcher) Tool() tools.Tool {
	return tools.Tool{Spec: spec(p.options.Offer), Mutates: true, Run: p.run}
}

const name = "apply_patch"

// spec tells of a tool that the model knows, of a freeform tool, or of a
// function that takes the patch as its one argument and says how to write it.
func spec(offer tools.Form) tools.Spec {
	switch offer {
	case tools.Operation:
		return tools.Spec{Name: name, Builtin: name}
	case tools.Freeform:
		return tools.Spec{
			Name:        name,
			Description: "Edits files. This is a freeform tool: write the patch itself, not JSON around it.",
			Grammar:     v4a.Grammar,
			Returns:     nothing,
		}
	}
	return tools.Spec{
		Name:        name,
		Description: "Edits files.\n\n" + v4a.Instructions(),
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"input":{"type":"string","description":"The whole patch, from \"*** Begin Patch\" to \"*** End Patch\"."}` +
			`},"required":["input"],"additionalProperties":false}`),
		Returns: nothing,
	}
}

// nothing is what a script gets of a patch that was applied.
var nothing = json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)

// run applies a patch as a whole, or changes nothing. The output of an
// operation has no header: its item has a status.
func (p *Patcher) run(ctx context.Context, call tools.Call) (tools.Result, error) {
	switch {
	case call.Form == tools.Operation:
		return p.operate(ctx, call.Input)
	case call.Form == tools.Written && p.options.Written != nil:
		return p.edit(ctx, call.Input)
	}
	text, err := patchText(call)
	if err != nil {
		return tools.Result{}, err
	}
	began := time.Now()
	result, err := p.Apply(ctx, p.options.Dir.Path, text)
	result.Object = map[string]any{}
	if result.Failed {
		result.Object = strings.TrimSuffix(result.Output, "\n")
	}
	result.Output = layout(result.Failed, time.Since(began), result.Output)
	return result, err
}

// patchText is the patch that a call brings. The dispatcher hands on the text
// of a freeform tool however the model called it.
func patchText(call tools.Call) (string, error) {
	if call.Form == tools.Freeform {
		return call.Input, nil
	}
	var arguments struct {
		Input string `json:"input"`
	}
	err := call.Arguments(&arguments)
	return arguments.Input, err
}

// layout is the reference implementation's, which models know.
func layout(failed bool, took time.Duration, text string) string {
	exitCode := 0
	if failed {
		exitCode = 1
	}
	return fmt.Sprintf("Exit code: %d\nWall time: %.1f seconds\nOutput:\n%s\n", exitCode, took.Seconds(), strings.TrimSuffix(text, "\n"))
}
