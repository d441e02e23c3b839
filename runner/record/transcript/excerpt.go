package transcript

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// ExcerptLimits limits the texts in a View's Entries: the number of lines, taken from both ends, and the
// UTF-16 units of each line. The zero value keeps everything.
type ExcerptLimits struct {
	Lines        int // of an input or output
	MessageLines int
	Width        int
}

// excerpt shortens a text to a number of lines. A line counts those left out of the middle. The rest of the
// text is not kept in memory.
func (c ExcerptLimits) excerpt(s string, lines int) string {
	s = strings.TrimRight(s, "\n")
	if c == (ExcerptLimits{}) {
		return s
	}
	all := strings.Split(s, "\n")
	if omitted := len(all) - lines; omitted > 0 {
		tail := lines / 2
		all = slices.Concat(all[:lines-tail], []string{fmt.Sprintf("… %s not shown …", CountNoun(omitted, "line"))}, all[len(all)-tail:])
	}
	for i, line := range all {
		all[i] = markdown.Cut(line, c.Width)
	}
	return strings.Clone(strings.Join(all, "\n"))
}
