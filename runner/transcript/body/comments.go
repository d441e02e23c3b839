package body

import (
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// CommentMark is the first line of each comment that a transcript goes on in. A
// later run knows by it, and by their author, the comments of an earlier one.
const CommentMark = "<!-- agent-ci: transcript -->"

// block is a part of the transcript that stands by itself: a call with its
// output, a message. Whoever shows a transcript cuts between blocks only.
type block struct {
	text    func() string
	calls   int // that it shows
	changed bool
}

// book is a transcript on several pages: the body and its comments.
type book struct {
	pages []*page
	begun bool
	most  int // pages
	room  int // of a page after the first, in UTF-16 code units
}

// transcriptHead stands before the first block.
const transcriptHead = "\n## Transcript\n\n"

// put adds a block, on one page, where there is room for it.
func (b *book) put(one block) {
	text := one.text()
	begin := text
	if !b.begun {
		begin = transcriptHead + strings.TrimLeft(text, "\n")
	}
	b.begun = b.last().put(begin) || b.turn(strings.TrimLeft(text, "\n")) || b.begun
}

func (b *book) last() *page { return b.pages[len(b.pages)-1] }

// turn puts text on a new page, if there may be one and the text fits on it.
func (b *book) turn(text string) bool {
	next := &page{left: b.room}
	if len(b.pages) == b.most || !next.put(text) {
		return false
	}
	b.pages = append(b.pages, next)
	return true
}

// comments are the pages after the first, each with its heading.
func (b *book) comments(v *transcript.View, end ending) []string {
	var all []string
	for i, p := range b.pages[1:] {
		text := commentHead(v, i+2, len(b.pages)) + p.String()
		if i+2 == len(b.pages) && end.hidden > 0 {
			text += "\n" + end.notShown() + "\n"
		}
		all = append(all, text)
	}
	return all
}

func commentHead(v *transcript.View, part, parts int) string {
	return fmt.Sprintf("%s\n**Transcript of run %s, part %d of %d**\n\n", CommentMark, code(v.Started.RunID), part, parts)
}

// commentFrame is the room that a comment needs beside its blocks.
func commentFrame(v *transcript.View) int {
	parts := 1 + MaxComments
	return markdown.Units(commentHead(v, parts, parts) + "\n" + ending{hidden: v.Calls}.notShown() + "\n")
}
