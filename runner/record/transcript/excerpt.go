package transcript

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// The limits of excerpts in a View's Entries.
const (
	excerptLines = 40 // of an input or output
	messageLines = 8
	excerptWidth = 300 // of a line, in UTF-16 units
)

// excerpt shortens a text to a number of lines, taken from both ends, unless the folder keeps whole texts. A line
// counts those left out of the middle. The rest of the text is not kept in memory.
func (f *Folder) excerpt(s string, lines int) string {
	s = strings.TrimRight(s, "\n")
	if f.whole {
		return s
	}
	all := strings.Split(s, "\n")
	if omitted := len(all) - lines; omitted > 0 {
		tail := lines / 2
		all = slices.Concat(all[:lines-tail], []string{fmt.Sprintf("… %s not shown …", CountNoun(omitted, "line"))}, all[len(all)-tail:])
	}
	for i, line := range all {
		all[i] = markdown.Cut(line, excerptWidth)
	}
	return strings.Clone(strings.Join(all, "\n"))
}
