package body

import (
	"iter"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// room is what is left of a page and of those after it, in UTF-16 code units.
type room struct {
	left, page int
	pages      int // that may follow
	begun      bool
}

// placed is a block with its text, and how many calls stand before it.
type placed struct {
	block
	before        int
	length, atTop int // of the text, and of it at the top of a page
}

func place(b block, before int) placed {
	text := b.text()
	b.text = func() string { return text }
	return placed{b, before, markdown.Units(text), markdown.Units(strings.TrimLeft(text, "\n"))}
}

// take says whether a block fits, as book puts it.
func (r *room) take(p placed) bool {
	length := p.length
	if !r.begun {
		length = markdown.Units(transcriptHead) + p.atTop
	}
	if length > r.left {
		if r.pages == 0 || p.atTop > r.page {
			return false
		}
		r.left, r.pages = r.page, r.pages-1
		length = p.atTop
	}
	r.left, r.begun = r.left-length, true
	return true
}

func (r room) takesAll(all []placed) bool {
	for _, p := range all {
		if !r.take(p) {
			return false
		}
	}
	return true
}

// choose picks the blocks that are shown where there is no room for all: those of
// calls that changed files, as far as they fit, and of the others as many from
// the beginning as fit beside them. They keep their order, with a line where
// calls are left out.
func choose(all iter.Seq[block], mode Mode, r room) []placed {
	begun, changed := whatFits(all, r)
	if len(changed) == 0 {
		return begun
	}
	for n := len(begun); n >= 0; n-- {
		kept := withGaps(slices.Concat(begun[:n], whatChanged(begun[n:]), changed), mode)
		if r.takesAll(kept) {
			return kept
		}
	}
	changed = append(whatChanged(begun), changed...)
	for !r.takesAll(withGaps(changed, mode)) {
		changed = changed[:len(changed)-1]
	}
	return withGaps(changed, mode)
}

func whatChanged(all []placed) []placed {
	return slices.DeleteFunc(slices.Clone(all), func(p placed) bool { return !p.changed })
}

// whatFits gives the blocks that fit from the beginning, and of those behind them
// the ones of calls that changed files.
func whatFits(all iter.Seq[block], r room) (begun, changed []placed) {
	calls, full := 0, false
	for one := range all {
		switch {
		case !full:
			next := place(one, calls)
			if full = !r.take(next); !full {
				begun = append(begun, next)
			} else if one.changed {
				changed = append(changed, next)
			}
		case one.changed:
			changed = append(changed, place(one, calls))
		}
		calls += one.calls
	}
	return begun, changed
}

// withGaps puts a line where calls are left out between blocks.
func withGaps(all []placed, mode Mode) []placed {
	var kept []placed
	calls := 0
	for _, one := range all {
		if left := one.before - calls; left > 0 {
			kept = append(kept, place(block{text: func() string { return leftOut(left, mode) }}, calls))
		}
		kept = append(kept, one)
		calls = one.before + one.calls
	}
	return kept
}
