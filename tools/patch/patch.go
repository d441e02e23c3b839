// Package patch owns apply_patch, by which a model changes files. It knows the
// two forms in which models call it and what they are told; the format and how
// files are replaced is gitops/v4a's, which paths may change is the caller's.
package patch

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/tools"
)

// Options say what a patch may change, and how the model calls.
type Options struct {
	Dir      string   // working directory, absolute; where relative paths start
	Root     *os.Root // of Dir; the caller closes it when no call runs any more
	Freeform bool     // offer the tool with a grammar in place of a schema
	// Protect says in words for the model why a path, slash-separated and
	// relative to Dir, must not change; empty means that it may. It may be nil.
	Protect func(path string) string
}

// New makes the tool.
func New(o Options) tools.Tool { return applyPatch{o} }

type applyPatch struct{ Options }

// Spec tells of the freeform tool, or of a function that takes the patch as its
// one argument and says how to write it.
func (a applyPatch) Spec() tools.Spec {
	if a.Freeform {
		return tools.Spec{
			Name:        "apply_patch",
			Description: "Edits files. This is a freeform tool: write the patch itself, not JSON around it.",
			Grammar:     &tools.Grammar{Syntax: "lark", Definition: v4a.Grammar},
		}
	}
	return tools.Spec{
		Name:        "apply_patch",
		Description: "Edits files.\n\n" + v4a.Instructions(),
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"input":{"type":"string","description":"The whole patch, from \"*** Begin Patch\" to \"*** End Patch\"."}` +
			`},"required":["input"],"additionalProperties":false}`),
	}
}

func (applyPatch) Mutates() bool { return true }

// Run applies a patch as a whole, or changes nothing.
func (a applyPatch) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	began := time.Now()
	text, err := a.text(call)
	if err != nil {
		return tools.Result{}, err
	}
	plan, err := a.plan(ctx, text)
	if err == nil {
		err = plan.Commit(ctx)
	}
	if ctx.Err() != nil && err != nil {
		return tools.Result{}, err
	}
	took := time.Since(began)
	if err != nil {
		return tools.Result{Output: layout(1, took, err.Error()), Failed: true}, nil
	}
	return tools.Result{Output: layout(0, took, plan.Summary()), Detail: map[string]any{"files": files(plan)}}, nil
}

// text is the patch that a call brings. The dispatcher hands on the text of a
// freeform tool however the model called it.
func (a applyPatch) text(call tools.Call) (string, error) {
	if a.Freeform {
		return call.Input, nil
	}
	var arguments struct {
		Input string `json:"input"`
	}
	if err := json.Unmarshal([]byte(call.Input), &arguments); err != nil {
		return "", fmt.Errorf("read arguments: %w", err)
	}
	return arguments.Input, nil
}

// plan finds out what the patch would change, and that it may.
func (a applyPatch) plan(ctx context.Context, text string) (*v4a.Plan, error) {
	patch, err := v4a.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("apply_patch verification failed: %w", err)
	}
	a.localize(patch)
	plan, err := v4a.NewPlan(ctx, v4a.OnRoot(a.Root), patch)
	if err != nil {
		return nil, fmt.Errorf("apply_patch verification failed: %w", err)
	}
	return plan, a.permit(patch, plan)
}

// localize makes absolute paths below Dir relative to it. Others stay, and are
// refused with the rest of the rules on paths.
func (a applyPatch) localize(patch *v4a.Patch) {
	for i := range patch.Sections {
		section := &patch.Sections[i]
		section.Path, section.MoveTo = a.local(section.Path), a.local(section.MoveTo)
	}
}

func (a applyPatch) local(name string) string {
	if !filepath.IsAbs(name) {
		return name
	}
	for _, dir := range []string{a.Dir, realPath(a.Dir)} {
		if inside, err := filepath.Rel(dir, name); err == nil && filepath.IsLocal(inside) {
			return filepath.ToSlash(inside)
		}
	}
	return name
}

// realPath is dir with its links followed, or dir when that fails.
func realPath(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

// permit asks Protect about the paths as the patch spells them and as the plan
// found them: a link may have either end protected.
func (a applyPatch) permit(patch *v4a.Patch, plan *v4a.Plan) error {
	if a.Protect == nil {
		return nil
	}
	paths := v4a.Paths(patch)
	for _, change := range plan.Changes() {
		paths = append(paths, change.Path, change.MovedFrom)
	}
	for _, name := range paths {
		if name == "" {
			continue
		}
		if reason := a.Protect(path.Clean(name)); reason != "" {
			return fmt.Errorf("patch rejected: %s: %s", name, reason)
		}
	}
	return nil
}

// layout is the reference implementation's, which models know.
func layout(exitCode int, took time.Duration, text string) string {
	return fmt.Sprintf("Exit code: %d\nWall time: %.1f seconds\nOutput:\n%s\n", exitCode, took.Seconds(), strings.TrimSuffix(text, "\n"))
}

// file is a file that a patch changed, as the transcript keeps it.
type file struct {
	Op      string `json:"op"` // A, M or D, as git has it
	Path    string `json:"path"`
	From    string `json:"from,omitempty"` // of a file that moved
	Added   int    `json:"added"`          // lines
	Removed int    `json:"removed"`
}

var letters = map[v4a.Op]string{v4a.Add: "A", v4a.Update: "M", v4a.Delete: "D"}

func files(plan *v4a.Plan) []file {
	changes := plan.Changes()
	all := make([]file, len(changes))
	for i, c := range changes {
		all[i] = file{letters[c.Op], c.Path, c.MovedFrom, c.Added, c.Removed}
	}
	return all
}
