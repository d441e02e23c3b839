// Package patch holds the tool apply_patch, with which models change files. It knows the forms of calls and results.
// gitops/v4a knows the format of patches, and gitops/v4a/tree replaces files. The caller decides which paths may change.
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
	"github.com/agent-ci/agent-ci/tools/dialect"
)

// Options configures which changes are allowed, and how the model calls the tool.
type Options struct {
	Dir   tools.Folder // the working directory, where relative paths start
	Offer tools.Form   // form of the tool that the model is offered
	// Written is the format of edits in text, for calls of the form Written. It may be nil.
	Written *Written
	// View returns which files commands can see. A patch must not touch others. It may be nil.
	View func() (*grants.View, error)
	// Protect returns why a path must not change, or "". The path is slash-separated and relative to Dir. It may be
	// nil.
	Protect func(path string) string
	// Ignored reports whether git ignores a file. The path is slash-separated and relative to Dir. It may be nil.
	Ignored func(path string) bool
	// Ask returns the reason why a patch must not be applied, or "". It is asked if the patch fits the files.
	// textBefore goes before the result's output. Ask may be nil.
	Ask func(ctx context.Context, edits []tree.Edit, diff string) (refusal, textBefore string)
	// Keep receives each patch, as the model wrote it, before it is applied. If it returns an error, nothing is
	// applied. It may be nil.
	Keep func(text string) error
	// KeepDiff is like Keep, for changes that are no patches. It receives a git diff.
	KeepDiff func(diff string) error
}

// Patcher applies patches, from calls and elsewhere, by the same rules.
type Patcher struct{ options Options }

// New returns a Patcher.
func New(o Options) *Patcher { return &Patcher{o} }

// Tool returns the tool apply_patch. Each of its calls counts as mutating.
func (p *Patcher) Tool() tools.Tool {
	return tools.Tool{Spec: spec(p.options.Offer), Mutates: true, Run: p.run}
}

// spec returns the description of apply_patch in a form: a built-in tool, a freeform tool, or else a function that
// takes the patch.
func spec(offer tools.Form) tools.Spec {
	switch offer {
	case tools.Operation:
		return tools.Spec{Name: dialect.ApplyPatch, Builtin: dialect.ApplyPatch}
	case tools.Freeform:
		return tools.Spec{
			Name:        dialect.ApplyPatch,
			Description: "Edits files. This is a freeform tool: write the patch itself, not JSON around it.",
			Grammar:     v4a.Grammar,
			Returns:     emptyScriptResult,
		}
	}
	return tools.Spec{
		Name:        dialect.ApplyPatch,
		Description: "Edits files.\n\n" + v4a.Instructions(),
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"input":{"type":"string","description":"The whole patch, from \"*** Begin Patch\" to \"*** End Patch\"."}` +
			`},"required":["input"],"additionalProperties":false}`),
		Returns: emptyScriptResult,
	}
}

// emptyScriptResult is a script's result of an applied patch.
var emptyScriptResult = json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)

// run runs a call of apply_patch. The output has the reference implementation's header, except in the forms
// Operation and Written.
func (p *Patcher) run(ctx context.Context, call tools.Call) (tools.Result, error) {
	switch {
	case call.Form == tools.Operation:
		return p.applyOperation(ctx, call.Input)
	case call.Form == tools.Written && p.options.Written != nil:
		return p.applyWritten(ctx, call.Input)
	}
	text, err := call.Text()
	if err != nil {
		return tools.Result{}, err
	}
	began := time.Now()
	result, err := p.Apply(ctx, p.options.Dir.Path, text)
	output, exitCode := strings.TrimSuffix(result.Output, "\n"), 0
	result.Object = map[string]any{}
	if result.Failed {
		exitCode, result.Object = 1, output
	}
	result.Output = fmt.Sprintf("Exit code: %d\nWall time: %.1f seconds\nOutput:\n%s\n", exitCode, time.Since(began).Seconds(), output)
	return result, err
}
