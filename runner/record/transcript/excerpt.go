package transcript

import (
	"strings"

	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// Excerpt is a text from which lines may be left out.
type Excerpt struct {
	Head         string
	OmittedLines int    // lines left out between Head and Tail
	Tail         string // empty if OmittedLines is 0
}

// ExcerptLimits limits the text in an Excerpt: the number of lines, taken from both ends, and the
// UTF-16 units of each line. The zero value keeps everything.
type ExcerptLimits struct {
	Lines        int // of an input or output
	MessageLines int
	Width        int
}

// excerpt shortens a text to a number of lines. The rest of the text is not kept in memory.
func (c ExcerptLimits) excerpt(s string, lines int) Excerpt {
	s = strings.TrimRight(s, "\n")
	if c == (ExcerptLimits{}) {
		return Excerpt{Head: s}
	}
	all := strings.Split(s, "\n")
	if len(all) <= lines {
		return Excerpt{Head: c.joinNarrowed(all)}
	}
	tail := lines / 2
	return Excerpt{Head: c.joinNarrowed(all[:lines-tail]), OmittedLines: len(all) - lines, Tail: c.joinNarrowed(all[len(all)-tail:])}
}

// joinNarrowed joins lines, after it has cut each to the width. The result is a copy.
func (c ExcerptLimits) joinNarrowed(lines []string) string {
	for i, line := range lines {
		lines[i] = markdown.Cut(line, c.Width)
	}
	return strings.Clone(strings.Join(lines, "\n"))
}
