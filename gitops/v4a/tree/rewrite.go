package tree

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/agent-ci/agent-ci/gitops/v4a"
)

// Texts are files by the path that somebody spells; nil: there is no such file, or there is to be
// none.
type Texts map[string]*string

// NewRewrite finds what other texts of files change: paths are read and handed, as they are, to
// rewrite, which gives the new text of those that change. Paths are followed, refused and limited as
// those of a patch are by [NewPlan]; files keep their modes, and bytes are what they are.
//
// An error is a [*PathError], that of rewrite, as it is, or that of ctx.
func NewRewrite(ctx context.Context, tree Dir, paths []string, rewrite func(was Texts) (Texts, error)) (*Plan, error) {
	p := newPlanner(tree)
	was, files := Texts{}, map[string]*file{}
	for _, name := range paths {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p.section = &v4a.Section{Path: name}
		f, err := p.find(name, true)
		if err != nil {
			return nil, err
		}
		files[name], was[name] = f, f.text()
	}
	now, err := rewrite(was)
	if err != nil {
		return nil, err
	}
	if err := p.rewrite(files, now); err != nil {
		return nil, err
	}
	return &Plan{tree: tree, patch: new(v4a.Patch), changed: p.changes()}, nil
}

func (f *file) text() *string {
	if !f.exists {
		return nil
	}
	text := f.content.Text()
	return &text
}

// rewrite gives files their new texts, in the order of the paths that spell them.
func (p *planner) rewrite(files map[string]*file, now Texts) error {
	by, total := map[*file]string{}, 0
	for _, name := range slices.Sorted(maps.Keys(now)) {
		p.section = &v4a.Section{Path: name}
		f, text := files[name], now[name]
		if f == nil {
			return p.refuse(name, "it was not read before it is to be written", nil)
		}
		if first, twice := by[f]; twice && !same(now[first], text) {
			return p.refuse(name, fmt.Sprintf("%s is the same file and is to have another text", first), nil)
		} else if twice {
			continue
		}
		by[f] = name
		if err := p.limit(name, text, &total); err != nil {
			return err
		}
		if err := p.replace(f, text); err != nil {
			return err
		}
	}
	return nil
}

func same(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func (p *planner) limit(name string, text *string, total *int) error {
	if text == nil {
		return nil
	}
	if len(*text) > MaxFileSize {
		return p.refuse(name, fmt.Sprintf("the file would have %d bytes, more than the %d that one may be given; use a command", len(*text), MaxFileSize), nil)
	}
	if *total += len(*text); *total > MaxTotalSize {
		return p.refuse(name, fmt.Sprintf("with this file more than %d bytes are written at once; change fewer files, or use a command", MaxTotalSize), nil)
	}
	return nil
}

func (p *planner) replace(f *file, text *string) error {
	switch {
	case same(f.text(), text):
		return nil
	case text == nil:
		return p.delete()
	case p.isFolder(f):
		return p.refuse(p.section.Path, "it is to be a file and a directory; name another file", nil)
	case !f.exists:
		p.write(f, f.rewritten(*text), nil)
		return nil
	}
	f.content = f.content.Rewritten(*text)
	return nil
}

// isFolder says whether a file, or a directory that it is in, is to be the other as well.
func (p *planner) isFolder(f *file) bool {
	for dir := path.Dir(f.path); dir != "."; dir = path.Dir(dir) {
		if file := p.files[dir]; file != nil && file.exists {
			return true
		}
	}
	return p.folders[f.path]
}
