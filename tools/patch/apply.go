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
	"github.com/agent-ci/agent-ci/tools"
)

// Apply applies a patch whose relative paths start in dir, an absolute path.
// The result has the words alone, without the header that a call's form has. An
// error is ctx's, or that of Keep.
func (p *Patcher) Apply(ctx context.Context, dir, text string) (tools.Result, error) {
	below, err := p.below(dir)
	if err != nil {
		return rejected(err), nil
	}
	patch, err := v4a.Parse(text)
	if err != nil {
		return unfit(err), nil
	}
	return p.apply(ctx, tree.In(below, patch), text)
}

func (p *Patcher) apply(ctx context.Context, patch *v4a.Patch, text string) (tools.Result, error) {
	p.localize(patch)
	view, err := p.view()
	if err != nil {
		return tools.Result{}, err
	}
	if err := p.visible(view, v4a.Paths(patch)); err != nil { // before anything of them is looked at
		return rejected(err), nil
	}
	seen, err := p.tree(view)
	if err != nil {
		return tools.Result{}, err
	}
	plan, err := tree.NewPlan(ctx, seen, patch)
	switch hidden := hiddenIn(err); {
	case ctx.Err() != nil:
		return tools.Result{}, ctx.Err()
	case hidden != nil:
		return rejected(hidden), nil
	case err != nil:
		return unfit(err), nil
	}
	if err := cmp.Or(p.visible(view, changing(plan)), p.permit(patch, plan)); err != nil {
		return rejected(err), nil
	}
	refusal, aside, err := p.ask(ctx, plan)
	switch {
	case err != nil:
		return tools.Result{}, err
	case refusal != "":
		return tools.Refuse(aside + "patch rejected: " + refusal), nil
	}
	if p.options.Keep != nil {
		if err := p.options.Keep(text); err != nil {
			return tools.Result{}, fmt.Errorf("keep the patch: %w", err)
		}
	}
	result, err := p.commit(ctx, plan)
	result.Output = aside + result.Output
	return result, err
}

// ask puts a plan to who has a say in it.
func (p *Patcher) ask(ctx context.Context, plan *tree.Plan) (refusal, aside string, err error) {
	if p.options.Ask == nil {
		return "", "", nil
	}
	var diff strings.Builder
	if err := plan.Diff(&diff); err != nil {
		return "", "", err
	}
	refusal, aside = p.options.Ask(ctx, plan.Edits(), diff.String())
	return refusal, aside, ctx.Err()
}

func (p *Patcher) commit(ctx context.Context, plan *tree.Plan) (tools.Result, error) {
	if p.options.Journal == nil {
		return p.write(ctx, plan)
	}
	done, err := p.options.Journal(changing(plan))
	if err != nil {
		return tools.Result{}, fmt.Errorf("write the journal of the patch: %w", err)
	}
	result, err := p.write(ctx, plan)
	done(err == nil && !result.Failed)
	return result, err
}

// changing are the paths that a plan puts, replaces or takes away.
func changing(plan *tree.Plan) []string {
	var paths []string
	for _, change := range plan.Changes() {
		paths = append(paths, change.Path)
		if change.MovedFrom != "" {
			paths = append(paths, change.MovedFrom)
		}
	}
	return paths
}

func (p *Patcher) write(ctx context.Context, plan *tree.Plan) (tools.Result, error) {
	err := plan.Commit(ctx)
	done := tools.Result{Output: plan.Summary() + plan.Notes() + p.ignoredNote(plan), Detail: map[string]any{"files": files(plan)}}
	var leftover *tree.LeftoverError
	switch {
	case err == nil:
		return done, nil
	case errors.As(err, &leftover):
		done.Output += "Warning: " + err.Error() + "\n"
		return done, nil
	case ctx.Err() != nil:
		return tools.Result{}, err
	}
	return tools.Refuse(err.Error()), nil
}

// ignoredNote tells of files that will not be in what is published.
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

// unfit is the answer to a patch that is none or does not fit the files, in the
// reference implementation's words.
func unfit(err error) tools.Result {
	return tools.Refuse("apply_patch verification failed: " + err.Error())
}

// rejected is the answer to a patch that may not be applied.
func rejected(err error) tools.Result { return tools.Refuse("patch rejected: " + err.Error()) }

// below is the slash-separated path from Dir to dir, links followed.
func (p *Patcher) below(dir string) (string, error) {
	if dir == p.options.Dir.Path {
		return ".", nil
	}
	inside, err := p.options.Dir.Follow(dir)
	if tools.IsOutside(err) {
		return "", fmt.Errorf("%s is outside %s, where patches are applied", dir, p.options.Dir.Path)
	}
	if err != nil {
		return "", fmt.Errorf("%s: there is no such directory", dir)
	}
	return filepath.ToSlash(inside), nil
}

// localize makes absolute paths below Dir relative to it. Others stay, and are
// refused with the rest of the rules on paths.
func (p *Patcher) localize(patch *v4a.Patch) {
	for i := range patch.Sections {
		section := &patch.Sections[i]
		section.Path, section.MoveTo = p.local(section.Path), p.local(section.MoveTo)
	}
}

func (p *Patcher) local(name string) string {
	if inside, ok := p.options.Dir.Below(name); ok && filepath.IsAbs(name) {
		return filepath.ToSlash(inside)
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
func (p *Patcher) permit(patch *v4a.Patch, plan *tree.Plan) error {
	if p.options.Protect == nil {
		return nil
	}
	for _, name := range append(v4a.Paths(patch), changing(plan)...) {
		if reason := p.options.Protect(path.Clean(name)); reason != "" {
			return fmt.Errorf("%s: %s", name, reason)
		}
	}
	return nil
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

func files(plan *tree.Plan) []file {
	changes := plan.Changes()
	all := make([]file, len(changes))
	for i, c := range changes {
		all[i] = file{letters[c.Op], c.Path, c.MovedFrom, c.Added, c.Removed}
	}
	return all
}
