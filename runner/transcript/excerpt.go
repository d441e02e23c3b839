package transcript

import (
	"strings"

	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// Excerpt is a text of which some lines in the middle may be missing.
type Excerpt struct {
	Head   string
	Hidden int    // lines between Head and Tail that are not there
	Tail   string // empty if Hidden is 0
}

// cut says how much of a text is kept: lines from both its ends, and of each
// line so many UTF-16 units. 0 keeps all.
type cut struct{ lines, width int }

// bodyCut is what a pull request shows of an input or an output.
var bodyCut = cut{lines: 40, width: 300}

// messageCut is what is kept of a message where c is kept of an output.
func messageCut(c cut) cut {
	if c.lines == 0 {
		return c
	}
	return cut{lines: 8, width: c.width}
}

// apply cuts s. The excerpt holds nothing of s alive that it does not show.
func (c cut) apply(s string) Excerpt {
	s = strings.TrimRight(s, "\n")
	if c.lines == 0 {
		return Excerpt{Head: s}
	}
	hidden := strings.Count(s, "\n") + 1 - c.lines
	if hidden <= 0 {
		return Excerpt{Head: c.narrow(s)}
	}
	tail := c.lines / 2
	return Excerpt{
		Head:   c.narrow(firstLines(s, c.lines-tail)),
		Hidden: hidden,
		Tail:   c.narrow(lastLines(s, tail)),
	}
}

// again cuts an excerpt that may be whole; one that was cut before stays as it is.
func (c cut) again(e Excerpt) Excerpt {
	if e.Hidden > 0 {
		return e
	}
	return c.apply(e.Head)
}

func (c cut) narrow(s string) string {
	var b strings.Builder
	b.Grow(min(len(s), c.lines*(c.width+4)))
	for line := range strings.Lines(s) {
		text, isLine := strings.CutSuffix(line, "\n")
		b.WriteString(markdown.Cut(text, c.width))
		if isLine {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func firstLines(s string, n int) string {
	end := 0
	for range n {
		end += strings.IndexByte(s[end:], '\n') + 1
	}
	return s[:end-1]
}

func lastLines(s string, n int) string {
	start := len(s)
	for range n {
		start = strings.LastIndexByte(s[:start], '\n')
	}
	return s[start+1:]
}
