package patch

import (
	"context"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/tools"
)

// Rewrite changes files by the rules for patches, all or none. It reads the files at paths, which are
// absolute or relative to dir, and passes their texts to the function rewrite. The texts that rewrite
// returns replace them. A failed result names the rule that forbids the change; any other only has notes.
//
// If rewrite returns an error, Rewrite changes nothing and returns that error. Other errors are those of
// [Patcher.Apply].
func (p *Patcher) Rewrite(ctx context.Context, dir string, paths []string, rewrite func(texts tree.Texts) (tree.Texts, error)) (tools.Result, error) {
	c := fileChange{kind: "change", successText: func(*tree.Plan) string { return "" }, keep: p.keepDiff}
	below, err := p.relativeDir(dir)
	if err != nil {
		return c.reject(err), nil
	}
	pathInDir := p.pathsInDir(below, paths)
	for _, name := range paths {
		c.requestedPaths = append(c.requestedPaths, pathInDir[name])
	}
	var rewriteErr error // the error of rewrite
	c.plan = func(seen tree.Dir) (*tree.Plan, []string, error) {
		var changes []string
		plan, err := tree.NewRewrite(ctx, seen, c.requestedPaths, func(texts tree.Texts) (now tree.Texts, err error) {
			if now, err = rewrite(byRequestedPath(pathInDir, texts)); err != nil {
				rewriteErr = err
				return nil, err
			}
			now, changes, err = byPathInDir(pathInDir, now)
			return now, err
		})
		return plan, changes, err
	}
	c.unfit = func(err error) tools.Result { return tools.Refuse(err.Error()) }
	result, err := p.makeChange(ctx, c)
	if rewriteErr != nil && err == nil {
		return tools.Result{}, rewriteErr
	}
	return result, err
}

// pathsInDir maps each path to the same path relative to Dir. Relative paths start in the directory below.
func (p *Patcher) pathsInDir(below string, paths []string) map[string]string {
	patch := new(v4a.Patch)
	for _, name := range paths {
		patch.Sections = append(patch.Sections, v4a.Section{Path: name})
	}
	patch = tree.In(below, patch)
	p.makeRelative(patch)
	pathInDir := map[string]string{}
	for i, name := range paths {
		pathInDir[name] = patch.Sections[i].Path
	}
	return pathInDir
}

// byRequestedPath returns the texts by the paths as requested. pathInDir maps these to the keys of byPath.
func byRequestedPath(pathInDir map[string]string, byPath tree.Texts) tree.Texts {
	texts := tree.Texts{}
	for name, path := range pathInDir {
		texts[name] = byPath[path]
	}
	return texts
}

// byPathInDir returns the texts by the paths relative to Dir. changes lists these paths.
func byPathInDir(pathInDir map[string]string, now tree.Texts) (texts tree.Texts, changes []string, err error) {
	texts = tree.Texts{}
	for name, text := range now {
		path, wasRead := pathInDir[name]
		other, isChanged := texts[path]
		conflicts := isChanged && !sameText(text, other)
		if !wasRead || conflicts {
			return nil, nil, fmt.Errorf("%s: it is to be changed twice, or was not read before", name)
		}
		texts[path] = text
		changes = append(changes, path)
	}
	return texts, changes, nil
}

// sameText reports whether two texts are equal. A deletion, nil, equals nothing.
func sameText(a, b *string) bool { return a != nil && b != nil && *a == *b }

// keepDiff passes the diff of a planned change to Options.KeepDiff, unless it is empty.
func (p *Patcher) keepDiff(plan *tree.Plan) error {
	if p.options.KeepDiff == nil || len(plan.Changes()) == 0 {
		return nil
	}
	var diff strings.Builder
	if err := plan.Diff(&diff); err != nil {
		return err
	}
	return p.options.KeepDiff(diff.String())
}

// ApplyDiff repeats a change from its git diff, with paths relative to Dir. A diff that does not fit gives a failed
// result. Errors are those of [Patcher.Rewrite].
func (p *Patcher) ApplyDiff(ctx context.Context, diff string) (tools.Result, error) {
	files, err := tree.ParseDiff(diff)
	if err != nil {
		return tools.Refuse(err.Error()), nil
	}
	var fitErr error
	result, err := p.Rewrite(ctx, p.options.Dir.Path, files.Paths(), func(texts tree.Texts) (tree.Texts, error) {
		newTexts, err := files.Apply(texts)
		fitErr = err
		return newTexts, err
	})
	if fitErr != nil {
		return tools.Refuse(fitErr.Error()), nil
	}
	return result, err
}
