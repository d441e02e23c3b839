package show

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// bar is how many characters the bar has that shows how much is settled.
const bar = 40

// An issue's text has at most 65,536 UTF-16 units; the rest is room for people's edits.
const (
	mostRows  = 100 // targets of a class
	mostUnits = 58_000
)

// Markdown writes the status for a tracking issue.
func Markdown(w io.Writer, status campaign.Status) error {
	s := newSheet(status)
	var out strings.Builder
	full := s.Settled * bar / max(s.Total, 1)
	fmt.Fprintf(&out, "## Campaign %s\n\n`%s%s` %d of %d targets settled\n\n", markdown.Text(s.Campaign), strings.Repeat("█", full), strings.Repeat("░", bar-full), s.Settled, s.Total)
	out.WriteString("| | targets |\n|---|--:|\n")
	for _, c := range s.Counts {
		fmt.Fprintf(&out, "| %s | %d |\n", c.Words, c.Targets)
	}
	out.WriteString("\n")
	for _, line := range append([]string{s.Wait}, s.Lines...) {
		if line != "" {
			out.WriteString(markdown.Text(line) + "\n\n")
		}
	}
	for _, c := range slices.Backward(s.Counts) { // what asks for a person first
		if !c.Waits {
			s.fold(&out, c)
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// fold writes the targets of a class, as far as there is room for them.
func (s *sheet) fold(out *strings.Builder, c count) {
	fmt.Fprintf(out, "<details><summary>%s: %d</summary>\n\n", c.Words, c.Targets)
	written, units := 0, markdown.Units(out.String())
	for _, r := range s.Rows {
		if r.Words != c.Words {
			continue
		}
		line := "- " + markdown.Code(markdown.Cut(r.Name, 200))
		if r.Link != "" {
			line += fmt.Sprintf(" [#%d](%s)", r.Pull, r.Link)
		}
		if r.Note != "" {
			line += ": " + markdown.Text(markdown.Cut(r.Note, 300))
		}
		line += "\n"
		if units += markdown.Units(line); written == mostRows || units > mostUnits {
			break
		}
		out.WriteString(line)
		written++
	}
	if more := c.Targets - written; more > 0 {
		fmt.Fprintf(out, "- and %d more\n", more)
	}
	out.WriteString("\n</details>\n\n")
}
