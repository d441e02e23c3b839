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

// newBlock returns a block with a text that follows callsBefore calls.
func newBlock(text string, callsBefore int) block {
	return block{text: text, length: markdown.Units(text), topLength: markdown.Units(strings.TrimLeft(text, "\n")), callsBefore: callsBefore}
}

// entryBlock returns a message or call as a block that follows callsBefore calls.
func entryBlock(e transcript.Entry, mode Mode, callsBefore int) block {
	b := newBlock(entryText(e, mode), callsBefore)
	b.calls, b.changed = callCount(e), e.Call != nil && e.Call.Changed
	return b
}

// transcriptHead comes before the first block.
const transcriptHead = "\n## Transcript\n\n"

// remainingSpace is the space left on this page and on further pages, in UTF-16 units.
type remainingSpace struct {
	units, pageSize int
	furtherPages    int  // number of further pages
	headingWritten  bool // the transcript has begun, so its heading is written
}

// placeBlock places a block on this page, or else at the top of the next one. It returns the text
// to write, whether that begins the next page (onNextPage), and whether there was space.
func (r *remainingSpace) placeBlock(b block) (text string, onNextPage, fits bool) {
	text, length := b.text, b.length
	if !r.headingWritten {
		text, length = transcriptHead+strings.TrimLeft(b.text, "\n"), markdown.Units(transcriptHead)+b.topLength
	}
	if length > r.units {
		if r.furtherPages == 0 || b.topLength > r.pageSize {
			return "", false, false
		}
		r.units, r.furtherPages = r.pageSize, r.furtherPages-1
		text, length, onNextPage = strings.TrimLeft(b.text, "\n"), b.topLength, true
	}
	r.units, r.headingWritten = r.units-length, true
	return text, onNextPage, true
}

// paginate places blocks on pages, using up only its copy of the space. fits is false if there is too little.
func (r remainingSpace) paginate(all []block) (pages []string, fits bool) {
	var page strings.Builder
	for _, b := range all {
		text, onNextPage, isPlaced := r.placeBlock(b)
		if !isPlaced {
			return nil, false
		}
		if onNextPage {
			pages = append(pages, page.String())
			page.Reset()
		}
		page.WriteString(text)
	}
	return append(pages, page.String()), true
}

// chooseBlocks returns the blocks to show, in order, with marks for gaps. If not all fit, it prefers calls
// that changed files. Then it adds others from the beginning, while they fit.
func chooseBlocks(entries []transcript.Entry, mode Mode, space remainingSpace) []block {
	all := blocksOf(entries, mode, space.units+space.furtherPages*space.pageSize)
	changes := changedBlocks(all)
	// afterDrops returns the blocks that remain after n drops. The first len(all) drops take one block after the
	// other, from the end, but spare changes. Each further one takes a change, from the end.
	maxDrops := len(all) + len(changes)
	afterDrops := func(n int) []block {
		if n <= len(all) {
			kept := len(all) - n
			return withGaps(append(all[:kept:kept], changedBlocks(all[kept:])...), mode)
		}
		return withGaps(changes[:maxDrops-n], mode)
	}
	fewest := sort.Search(maxDrops, func(n int) bool {
		_, fits := space.paginate(afterDrops(n))
		return fits
	})
	return afterDrops(fewest)
}

// blocksOf returns entries as blocks. Once the blocks exceed maxUnits UTF-16 units together, it only adds calls
// that changed files, because no other one can fit.
func blocksOf(entries []transcript.Entry, mode Mode, maxUnits int) (all []block) {
	calls, remaining := 0, maxUnits
	for _, e := range entries {
		isChange := e.Call != nil && e.Call.Changed
		if remaining >= 0 || isChange {
			b := entryBlock(e, mode, calls)
			all, remaining = append(all, b), remaining-b.topLength
		}
		calls += callCount(e)
	}
	return all
}

// changedBlocks returns the blocks of calls that changed files.
func changedBlocks(all []block) []block {
	return slices.DeleteFunc(slices.Clone(all), func(b block) bool { return !b.changed })
}

// callCount returns the number of calls in an entry: 0 or 1.
func callCount(e transcript.Entry) int {
	if e.Call == nil {
		return 0
	}
	return 1
}

// withGaps returns blocks with marks where calls are left out.
func withGaps(all []block, mode Mode) (marked []block) {
	calls := 0
	for _, b := range all {
		if omitted := b.callsBefore - calls; omitted > 0 {
			marked = append(marked, newBlock(omittedMark(omitted, mode), calls))
		}
		marked = append(marked, b)
		calls = b.callsBefore + b.calls
	}
	return marked
}
