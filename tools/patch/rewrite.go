package patch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/tools"
)

// Rewrite changes files by the rules for patches, all or none. It reads the files at paths, which are absolute or
// relative to Dir, and passes their texts to the function rewrite. The texts that rewrite returns replace them. A failed
// result names the rule that forbids the change, or has the error of rewrite; any other only has notes.
//
// Errors are those of [Patcher.Apply].
func (p *Patcher) Rewrite(ctx context.Context, paths []string, rewrite func(texts tree.Texts) (tree.Texts, error)) (tools.Result, error) {
	c := fileChange{kind: "change", keep: p.keepDiff}
	pathInDir := map[string]string{}
	for _, name := range paths {
		pathInDir[name] = p.relative(name)
		c.requestedPaths = append(c.requestedPaths, pathInDir[name])
	}
	c.plan = func(seen tree.Dir) (*tree.Plan, []string, error) {
		var changes []string
		plan, err := tree.NewRewrite(ctx, seen, c.requestedPaths, func(texts tree.Texts) (tree.Texts, error) {
			rewritten, err := rewrite(byRequestedPath(pathInDir, texts))
			if err != nil {
				return nil, err
			}
			rewritten, changes, err = byPathInDir(pathInDir, rewritten)
			return rewritten, err
		})
		return plan, changes, err
	}
	return p.makeChange(ctx, c)
}

// byRequestedPath returns the texts by the paths as requested. pathInDir maps these to the keys of byPath.
func byRequestedPath(pathInDir map[string]string, byPath tree.Texts) tree.Texts {
	texts := tree.Texts{}
	for name, path := range pathInDir {
		texts[name] = byPath[path]
	}
	return texts
}

// byPathInDir returns the texts by the paths relative to Dir. changes lists these paths. A nil text deletes its file. It
// is an error if a file was not read before, or if two requested paths lead to one file and their texts differ.
func byPathInDir(pathInDir map[string]string, now tree.Texts) (texts tree.Texts, changes []string, err error) {
	texts = tree.Texts{}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		text := now[name]
		path, wasRead := pathInDir[name]
		other, isTwice := texts[path]
		conflicts := isTwice && (text == nil || other == nil || *text != *other)
		if !wasRead || conflicts {
			return nil, nil, fmt.Errorf("%s: it is to be changed twice, or was not read before", name)
		}
		texts[path] = text
		changes = append(changes, path)
	}
	return texts, changes, nil
}

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
	return p.Rewrite(ctx, files.Paths(), files.Apply)
}
