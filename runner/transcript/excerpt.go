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

// Cut says how much of a text an Excerpt has: so many lines from both its ends,
// and of each line so many UTF-16 units. The zero Cut keeps all.
type Cut struct {
	Lines        int // of an input or an output
	MessageLines int
	Width        int
}

func (c Cut) text(s string) Excerpt { return c.excerpt(s, c.Lines) }

// excerpt cuts s. The result holds nothing of s alive that it does not show.
func (c Cut) excerpt(s string, lines int) Excerpt {
	s = strings.TrimRight(s, "\n")
	if c == (Cut{}) {
		return Excerpt{Head: s}
	}
	hidden := strings.Count(s, "\n") + 1 - lines
	if hidden <= 0 {
		return Excerpt{Head: c.narrow(s, lines)}
	}
	tail := lines / 2
	return Excerpt{
		Head:   c.narrow(firstLines(s, lines-tail), lines-tail),
		Hidden: hidden,
		Tail:   c.narrow(lastLines(s, tail), tail),
	}
}

func (c Cut) narrow(s string, lines int) string {
	var b strings.Builder
	b.Grow(min(len(s), lines*(c.Width+4)))
	for line := range strings.Lines(s) {
		text, isLine := strings.CutSuffix(line, "\n")
		b.WriteString(markdown.Cut(text, c.Width))
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
