package body

import (
	"slices"
	"sort"
	"strings"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// block is an indivisible part of the transcript: a call with its output, or a message. Transcripts
// are cut between blocks.
type block struct {
	text              string
	length, topLength int  // of the text, and of it at the top of a page
	callsBefore       int  // calls that stand before it
	calls             int  // that it shows
	changed           bool // files, by its call
}

func newBlock(text string, before int) block {
	return block{text: text, length: markdown.Units(text), topLength: markdown.Units(strings.TrimLeft(text, "\n")), callsBefore: before}
}

func entryBlock(e transcript.Entry, mode Mode, before int) block {
	b := newBlock(entryText(e, mode), before)
	b.calls, b.changed = callsIn(e), e.Call != nil && e.Call.Changed
	return b
}

// transcriptHead stands before the first block.
const transcriptHead = "\n## Transcript\n\n"

// remainingSpace is the space left on this page and further ones, in UTF-16 units.
type remainingSpace struct {
	units, page int
	following   int // pages
	begun       bool
}

// placeBlock places a block on this page or the next. It returns the placed text, whether it turned the
// page, and whether there was room.
func (r *remainingSpace) placeBlock(b block) (text string, turned, fits bool) {
	text, length := b.text, b.length
	if !r.begun {
		text, length = transcriptHead+strings.TrimLeft(b.text, "\n"), markdown.Units(transcriptHead)+b.topLength
	}
	if length > r.units {
		if r.following == 0 || b.topLength > r.page {
			return "", false, false
		}
		r.units, r.following = r.page, r.following-1
		text, length, turned = strings.TrimLeft(b.text, "\n"), b.topLength, true
	}
	r.units, r.begun = r.units-length, true
	return text, turned, true
}

// paginate places blocks on one or more pages.
func (r remainingSpace) paginate(all []block) (pages []string, fits bool) {
	var page strings.Builder
	for _, b := range all {
		text, turned, fits := r.placeBlock(b)
		if !fits {
			return nil, false
		}
		if turned {
			pages = append(pages, page.String())
			page.Reset()
		}
		page.WriteString(text)
	}
	return append(pages, page.String()), true
}

// chooseBlocks selects blocks if not all fit: calls that changed files first, then from the beginning
// as many others as fit beside them. It keeps the order and marks gaps.
func chooseBlocks(all []transcript.Entry, mode Mode, r remainingSpace) []block {
	begun, changed := fittingBlocks(all, mode, r)
	if len(changed) == 0 {
		return begun
	}
	without := func(n int) []block { // the last n of those that begin
		n = len(begun) - n
		return withGaps(slices.Concat(begun[:n], changedBlocks(begun[n:]), changed), mode)
	}
	fits := func(all []block) bool {
		_, fits := r.paginate(all)
		return fits
	}
	if n := sort.Search(len(begun)+1, func(n int) bool { return fits(without(n)) }); n <= len(begun) {
		return without(n)
	}
	changed = append(changedBlocks(begun), changed...)
	for !fits(withGaps(changed, mode)) {
		changed = changed[:len(changed)-1]
	}
	return withGaps(changed, mode)
}

func changedBlocks(all []block) []block {
	return slices.DeleteFunc(slices.Clone(all), func(b block) bool { return !b.changed })
}

// fittingBlocks returns the blocks that fit from the beginning, and the later ones of calls that changed
// files.
func fittingBlocks(all []transcript.Entry, mode Mode, r remainingSpace) (begun, changed []block) {
	calls, full := 0, false
	for _, e := range all {
		if !full || e.Call != nil && e.Call.Changed {
			next := entryBlock(e, mode, calls)
			if !full {
				_, _, fits := r.placeBlock(next)
				full = !fits
			}
			switch {
			case !full:
				begun = append(begun, next)
			case next.changed:
				changed = append(changed, next)
			}
		}
		calls += callsIn(e)
	}
	return begun, changed
}

// callsIn returns the number of tool calls in an entry.
func callsIn(e transcript.Entry) int {
	if e.Call == nil {
		return 0
	}
	return 1
}

// withGaps marks gaps between blocks.
func withGaps(all []block, mode Mode) []block {
	var kept []block
	calls := 0
	for _, b := range all {
		if left := b.callsBefore - calls; left > 0 {
			kept = append(kept, newBlock(omittedMark(left, mode), calls))
		}
		kept = append(kept, b)
		calls = b.callsBefore + b.calls
	}
	return kept
}
