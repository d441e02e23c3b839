package body

import (
	"slices"
	"sort"
	"strings"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// block is a part of the transcript that is not divided: a call with its output, or a message.
type block struct {
	text              string
	length, topLength int  // length of the text, and its length at the top of a page
	callsBefore       int  // number of calls before it
	calls             int  // number of calls that it shows
	changed           bool // its call changed files
}

func newBlock(text string, before int) block {
	return block{text: text, length: markdown.Units(text), topLength: markdown.Units(strings.TrimLeft(text, "\n")), callsBefore: before}
}

func entryBlock(e transcript.Entry, mode Mode, before int) block {
	b := newBlock(entryText(e, mode), before)
	b.calls, b.changed = callsIn(e), e.Call != nil && e.Call.Changed
	return b
}

// transcriptHead comes before the first block.
const transcriptHead = "\n## Transcript\n\n"

// remainingSpace is the space left on this page and on further pages, in UTF-16 units.
type remainingSpace struct {
	units, page int
	following   int  // number of further pages
	begun       bool // the transcript has begun, so its heading is written
}

// placeBlock places a block on this page, or else at the top of the next one. It returns the text
// to write, whether that begins the next page, and whether there was space.
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

// paginate places blocks on pages. fits is false if there is too little space.
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

// chooseBlocks returns the blocks to show. If not all fit, calls that changed files come first.
// Then it takes as many others as fit, from the beginning. The order stays, and gaps are marked.
func chooseBlocks(all []transcript.Entry, mode Mode, r remainingSpace) []block {
	begun, changed := fittingBlocks(all, mode, r)
	if len(changed) == 0 {
		return begun
	}
	without := func(n int) []block { // without the last n blocks from the beginning that changed no files
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

// fittingBlocks returns the blocks that fit, from the beginning. changed has later blocks of calls
// that changed files.
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

// callsIn returns the number of calls in an entry: 0 or 1.
func callsIn(e transcript.Entry) int {
	if e.Call == nil {
		return 0
	}
	return 1
}

// withGaps returns blocks with marks where calls are left out.
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
