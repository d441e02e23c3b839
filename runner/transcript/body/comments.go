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

// book is a transcript on several pages: the body and its comments.
type book struct {
	pages []*strings.Builder
	room
}

// put adds a block that there is room for.
func (b *book) put(one block) {
	text, begun, following := one.text, b.begun, b.following
	b.take(one)
	if b.following < following {
		b.pages = append(b.pages, &strings.Builder{})
		text = strings.TrimLeft(text, "\n")
	} else if !begun {
		text = transcriptHead + strings.TrimLeft(text, "\n")
	}
	b.pages[len(b.pages)-1].WriteString(text)
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
