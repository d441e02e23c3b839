package patch

import (
	"context"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/tools"
)

// Rewrite changes files by the rules for patches, all or none. It reads paths, absolute or relative
// to dir, and passes them to rewrite, which returns the new texts. A failed result names the rule
// that forbids the change; any other only has notes.
//
// An error of rewrite is returned unchanged, without any change. Other errors are those of [Patcher.Apply].
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

// pathsInDir maps paths to those relative to Dir.
func (p *Patcher) pathsInDir(below string, paths []string) map[string]string {
	named := new(v4a.Patch)
	for _, name := range paths {
		named.Sections = append(named.Sections, v4a.Section{Path: name})
	}
	named = tree.In(below, named)
	p.makeRelative(named)
	pathInDir := map[string]string{}
	for i, name := range paths {
		pathInDir[name] = named.Sections[i].Path
	}
	return pathInDir
}

// byRequestedPath returns the texts by the paths as requested.
func byRequestedPath(pathInDir map[string]string, byPath tree.Texts) tree.Texts {
	texts := tree.Texts{}
	for name, path := range pathInDir {
		texts[name] = byPath[path]
	}
	return texts
}

// byPathInDir returns the texts by the paths relative to Dir.
func byPathInDir(pathInDir map[string]string, now tree.Texts) (texts tree.Texts, changes []string, err error) {
	texts = tree.Texts{}
	for name, text := range now {
		path, known := pathInDir[name]
		other, twice := texts[path]
		if !known || twice && !sameText(text, other) {
			return nil, nil, fmt.Errorf("%s: it is to be changed twice, or was not read before", name)
		}
		texts[path] = text
		changes = append(changes, path)
	}
	return texts, changes, nil
}

// sameText reports whether two names of a file get the same text. A deletion is never the same.
func sameText(a, b *string) bool { return a != nil && b != nil && *a == *b }

// keepDiff passes the diff of a change to Options.KeepDiff.
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

// ApplyDiff repeats a change from its saved diff, with paths relative to Dir. It is like [Patcher.Apply], but does not call
// Ask and Keep.
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
