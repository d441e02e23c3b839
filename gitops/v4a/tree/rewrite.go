package tree

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/agent-ci/agent-ci/gitops/v4a"
)

// Texts maps paths to texts. Nil means that the file is missing or is to be deleted.
type Texts map[string]*string

// NewRewrite plans new texts for files. It passes the current texts of paths to rewrite, which
// returns the changed ones. Paths follow the rules and limits of [NewPlan]. Files keep their modes.
// Texts may contain any bytes.
//
// An error is a [*PathError], rewrite's own, or ctx's.
func NewRewrite(ctx context.Context, tree Dir, paths []string, rewrite func(was Texts) (Texts, error)) (*Plan, error) {
	p := newPlanner(tree)
	was, files := Texts{}, map[string]*file{}
	for _, name := range paths {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p.section = &v4a.Section{Path: name}
		f, err := p.find(name, followLink)
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
	return &Plan{tree: tree, changed: p.changes()}, nil
}

// text returns the current text, or nil for a missing file.
func (f *file) text() *string {
	if !f.exists {
		return nil
	}
	return new(f.content)
}

// rewrite sets the new texts, sorted by path. Two paths of the same file must have the same text.
func (p *planner) rewrite(files map[string]*file, now Texts) error {
	by, total := map[*file]string{}, 0
	for _, name := range slices.Sorted(maps.Keys(now)) {
		p.section = &v4a.Section{Path: name}
		f, text := files[name], now[name]
		if f == nil {
			return p.refuse(name, "it was not read before it is to be written", nil)
		}
		if first, twice := by[f]; twice {
			if !equalTexts(now[first], text) {
				return p.refuse(name, fmt.Sprintf("%s is the same file and is to have another text", first), nil)
			}
			continue
		}
		by[f] = name
		if err := p.checkSize(name, text, &total); err != nil {
			return err
		}
		if err := p.replace(f, text); err != nil {
			return err
		}
	}
	return nil
}

// equalTexts reports whether two texts are equal, or both nil.
func equalTexts(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// checkSize refuses a new text that is too large, alone or together with the others. It adds the
// size to total.
func (p *planner) checkSize(name string, text *string, total *int) error {
	if text == nil {
		return nil
	}
	if len(*text) > MaxFileSize {
		return p.refuse(name, fmt.Sprintf("the file would have %d bytes, more than the %d that one may be given; use a command", len(*text), MaxFileSize), nil)
	}
	if *total += len(*text); *total > maxTotalSize {
		return p.refuse(name, fmt.Sprintf("with this file more than %d bytes are written at once; change fewer files, or use a command", maxTotalSize), nil)
	}
	return nil
}

// replace gives a file a new text. Nil deletes it.
func (p *planner) replace(f *file, text *string) error {
	switch {
	case equalTexts(f.text(), text):
		return nil
	case text == nil:
		return p.delete()
	case p.isFolder(f):
		return p.refuse(p.section.Path, "it is to be a file and a directory; name another file", nil)
	case !f.exists:
		p.write(f, *text, nil)
		return nil
	}
	f.content = *text
	return nil
}

// isFolder reports whether the path of a file is also needed as a directory, or goes through
// another file.
func (p *planner) isFolder(f *file) bool {
	for dir := path.Dir(f.path); dir != "."; dir = path.Dir(dir) {
		if file := p.files[dir]; file != nil && file.exists {
			return true
		}
	}
	return p.folders[f.path]
}
