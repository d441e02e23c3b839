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
func (p *Patcher) Rewrite(ctx context.Context, dir string, paths []string, rewrite func(was tree.Texts) (tree.Texts, error)) (tools.Result, error) {
	c := fileChange{kind: "change", successText: func(*tree.Plan) string { return "" }, keep: p.keepDiff}
	below, err := p.below(dir)
	if err != nil {
		return c.rejected(err), nil
	}
	at := p.places(below, paths)
	for _, name := range paths {
		c.named = append(c.named, at[name])
	}
	var own error // the error of rewrite
	c.plan = func(seen tree.Dir) (*tree.Plan, []string, error) {
		var changes []string
		plan, err := tree.NewRewrite(ctx, seen, c.named, func(was tree.Texts) (now tree.Texts, err error) {
			if now, err = rewrite(spelled(at, was)); err != nil {
				own = err
				return nil, err
			}
			now, changes, err = placed(at, now)
			return now, err
		})
		return plan, changes, err
	}
	c.unfit = func(err error) tools.Result { return tools.Refuse(err.Error()) }
	result, err := p.makeChange(ctx, c)
	if own != nil && err == nil {
		return tools.Result{}, own
	}
	return result, err
}

// places maps paths to those relative to Dir.
func (p *Patcher) places(below string, paths []string) map[string]string {
	named := new(v4a.Patch)
	for _, name := range paths {
		named.Sections = append(named.Sections, v4a.Section{Path: name})
	}
	named = tree.In(below, named)
	p.localize(named)
	at := map[string]string{}
	for i, name := range paths {
		at[name] = named.Sections[i].Path
	}
	return at
}

// spelled returns the texts by the paths as requested.
func spelled(at map[string]string, was tree.Texts) tree.Texts {
	texts := tree.Texts{}
	for name, place := range at {
		texts[name] = was[place]
	}
	return texts
}

// placed returns the texts by the paths relative to Dir.
func placed(at map[string]string, now tree.Texts) (texts tree.Texts, changes []string, err error) {
	texts = tree.Texts{}
	for name, text := range now {
		place, known := at[name]
		if other, twice := texts[place]; !known || twice && (text == nil || other == nil || *text != *other) {
			return nil, nil, fmt.Errorf("%s: it is to be changed twice, or was not read before", name)
		}
		texts[place], changes = text, append(changes, place)
	}
	return texts, changes, nil
}

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
	var unfit error
	result, err := p.Rewrite(ctx, p.options.Dir.Path, files.Paths(), func(was tree.Texts) (tree.Texts, error) {
		now, err := files.Apply(was)
		unfit = err
		return now, err
	})
	if unfit != nil {
		return tools.Refuse(unfit.Error()), nil
	}
	return result, err
}
