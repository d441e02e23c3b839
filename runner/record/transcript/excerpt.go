package transcript

import (
	"strings"

	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// Excerpt is a text with a possible gap of lines.
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

// excerpt cuts s. The result does not keep the rest in memory.
func (c Cut) excerpt(s string, lines int) Excerpt {
	s = strings.TrimRight(s, "\n")
	if c == (Cut{}) {
		return Excerpt{Head: s}
	}
	all := strings.Split(s, "\n")
	if len(all) <= lines {
		return Excerpt{Head: c.narrow(all)}
	}
	tail := lines / 2
	return Excerpt{Head: c.narrow(all[:lines-tail]), Hidden: len(all) - lines, Tail: c.narrow(all[len(all)-tail:])}
}

// narrow joins lines, each cut to the width.
func (c Cut) narrow(lines []string) string {
	var b strings.Builder
	for i, line := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(markdown.Cut(line, c.Width))
	}
	return b.String()
}
