package patch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/pathname"
	"github.com/agent-ci/agent-ci/tools"
)

// Apply applies a patch, all of it or nothing. Its paths are relative to dir, which is absolute. A patch that is
// refused or does not fit gives a failed result. The error is that of ctx, a failure of Options.View or
// Options.Keep, or of opening Dir.
func (p *Patcher) Apply(ctx context.Context, dir, text string) (tools.Result, error) {
	below, err := p.relativeDir(dir)
	if err != nil {
		return fileChange{kind: "patch"}.reject(err), nil
	}
	patch, err := v4a.Parse(text)
	if err != nil {
		return tools.Refuse(verificationFailed + err.Error()), nil
	}
	return p.apply(ctx, tree.In(below, patch), text)
}

// apply applies a parsed patch with paths relative to Dir. text is the patch as the model wrote it, for Options.Keep.
func (p *Patcher) apply(ctx context.Context, patch v4a.Patch, text string) (tools.Result, error) {
	p.makeRelative(patch)
	return p.makeChange(ctx, fileChange{
		kind: "patch", requestedPaths: v4a.Paths(patch), unfitPrefix: verificationFailed,
		plan: func(seen tree.Dir) (*tree.Plan, []string, error) {
			plan, err := tree.NewPlan(ctx, seen, patch)
			return plan, v4a.Paths(patch), err
		},
		keep: func(*tree.Plan) error {
			if p.options.Keep == nil {
				return nil
			}
			return p.options.Keep(text)
		},
	})
}

// fileChange is a requested change of files.
type fileChange struct {
	kind           string   // what the change is called in messages
	requestedPaths []string // paths relative to Dir, as spelled in the request
	// plan plans the change. It also returns the affected paths as the request spells them.
	plan        func(seen tree.Dir) (*tree.Plan, []string, error)
	unfitPrefix string                 // goes before the error in the output for a change that does not fit the files
	keep        func(*tree.Plan) error // records the change before it is made
}

// verificationFailed goes before the error of a patch that is invalid or does not fit. The words are the reference
// implementation's.
const verificationFailed = "apply_patch verification failed: "

// makeChange checks a change by all rules and makes it. All changes of files by tools go through it. A change that a
// rule refuses, or that does not fit the files, gives a failed result. The error is for all other failures.
func (p *Patcher) makeChange(ctx context.Context, c fileChange) (tools.Result, error) {
	view, err := p.newView()
	if err != nil {
		return tools.Result{}, err
	}
	if err := p.requireShortPaths(c.requestedPaths); err != nil {
		return c.reject(err), nil
	}
	if err := p.requireVisible(view, c.requestedPaths); err != nil { // check before looking at any file
		return c.reject(err), nil
	}
	visibleTree, err := p.openTree(view)
	if err != nil {
		return tools.Result{}, err
	}
	plan, spelledPaths, err := c.plan(visibleTree)
	switch hidden := asHiddenError(err); {
	case ctx.Err() != nil:
		return tools.Result{}, ctx.Err()
	case hidden != nil:
		return c.reject(hidden), nil
	case err != nil:
		return tools.Refuse(c.unfitPrefix + err.Error()), nil
	}
	resolvedPaths := changedPaths(plan)
	if err := cmp.Or(p.requireVisible(view, resolvedPaths), p.requireUnprotected(append(spelledPaths, resolvedPaths...))); err != nil {
		return c.reject(err), nil
	}
	refusal, textBefore, err := p.askHooks(ctx, plan)
	switch {
	case err != nil:
		return tools.Result{}, err
	case refusal != "":
		return tools.Refuse(textBefore + c.kind + " rejected: " + refusal), nil
	}
	if err := c.keep(plan); err != nil {
		return tools.Result{}, fmt.Errorf("keep the %s: %w", c.kind, err)
	}
	result, err := p.commit(ctx, plan)
	if err == nil && !result.Failed {
		result.Output = plan.Summary() + result.Output
	}
	result.Output = textBefore + result.Output
	return result, err
}

// requireShortPaths returns an error for the first path that is too long or too deep in Dir.
func (p *Patcher) requireShortPaths(paths []string) error {
	for _, name := range paths {
		if len(p.options.Dir.Path)+1+len(name) > pathname.Longest || pathname.IsTooDeep(name) {
			return fmt.Errorf("%s is longer or deeper than a path may be", clip.Visible(name, 100))
		}
	}
	return nil
}

// reject returns the result for a change that is not allowed.
func (c fileChange) reject(err error) tools.Result {
	return tools.Refuse(c.kind + " rejected: " + err.Error())
}

// askHooks returns the answer of Options.Ask about a plan: a refusal or "", and text for the model or "". The error
// is that of ctx or of making the diff.
func (p *Patcher) askHooks(ctx context.Context, plan *tree.Plan) (refusal, textBefore string, err error) {
	if p.options.Ask == nil {
		return "", "", nil
	}
	var diff strings.Builder
	if err := plan.Diff(&diff); err != nil {
		return "", "", err
	}
	refusal, textBefore = p.options.Ask(ctx, plan.Edits(), diff.String())
	return refusal, textBefore, ctx.Err()
}

// changedPaths returns the paths that a plan creates, replaces or removes, with links resolved.
func changedPaths(plan *tree.Plan) []string {
	var paths []string
	for _, change := range plan.Changes() {
		paths = append(paths, change.Path)
		if change.MovedFrom != "" {
			paths = append(paths, change.MovedFrom)
		}
	}
	return paths
}

// commit makes a planned change, and returns its notes as output. If that fails and ctx has not ended, the result
// has failed. Temporary files left behind only cause a warning.
func (p *Patcher) commit(ctx context.Context, plan *tree.Plan) (tools.Result, error) {
	err := plan.Commit(ctx)
	notes := plan.Notes() + p.ignoredNote(plan)
	result := tools.Result{Output: notes, Notes: notes, Detail: map[string]any{"files": plan.Changes()}}
	switch {
	case err == nil:
		return result, nil
	case errors.As(err, new(*tree.LeftoverError)):
		result.Output += "Warning: " + err.Error() + "\n"
		return result, nil
	case ctx.Err() != nil:
		return tools.Result{}, err
	}
	return tools.Refuse(err.Error()), nil
}

// ignoredNote returns a note about changed files that are not published, because git ignores them. It returns "" if
// there are none.
func (p *Patcher) ignoredNote(plan *tree.Plan) string {
	if p.options.Ignored == nil {
		return ""
	}
	var ignored []string
	for _, change := range plan.Changes() {
		if change.Op != v4a.Delete && p.options.Ignored(change.Path) {
			ignored = append(ignored, change.Path)
		}
	}
	if len(ignored) == 0 {
		return ""
	}
	return fmt.Sprintf("Note: git ignores %s: no part of the change that is checked and published. "+
		"If it belongs there, give it another path or change the rule in .gitignore.\n", strings.Join(ignored, ", "))
}

// relativeDir returns the slash-separated path from Dir to dir, with links resolved. The error is for the model.
func (p *Patcher) relativeDir(dir string) (string, error) {
	if dir == p.options.Dir.Path {
		return ".", nil
	}
	inside, err := p.options.Dir.Resolve(dir)
	if tools.IsOutside(err) {
		return "", fmt.Errorf("%s is outside %s, where patches are applied", dir, p.options.Dir.Path)
	}
	if err != nil {
		return "", fmt.Errorf("%s: there is no such directory", dir)
	}
	return filepath.ToSlash(inside), nil
}

// makeRelative changes a patch's absolute paths below Dir to relative ones. Other absolute paths stay, and are
// refused later.
func (p *Patcher) makeRelative(patch v4a.Patch) {
	for i := range patch {
		section := &patch[i]
		section.Path, section.MoveTo = p.relative(section.Path), p.relative(section.MoveTo)
	}
}

// relative returns the path relative to Dir if it is absolute and below Dir, or else unchanged.
func (p *Patcher) relative(name string) string {
	if inside, isBelow := p.options.Dir.Below(name); isBelow && filepath.IsAbs(name) {
		return filepath.ToSlash(inside)
	}
	return name
}

// realPath returns dir with links resolved, or unchanged if that fails.
func realPath(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

// requireUnprotected returns an error for the first path that Options.Protect forbids. Callers pass both the spelled
// and the resolved paths, because either end of a link may be protected.
func (p *Patcher) requireUnprotected(names []string) error {
	if p.options.Protect == nil {
		return nil
	}
	for _, name := range names {
		if reason := p.options.Protect(path.Clean(name)); reason != "" {
			return fmt.Errorf("%s: %s", name, reason)
		}
	}
	return nil
}
