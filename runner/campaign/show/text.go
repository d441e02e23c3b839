package show

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/progress"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// Table writes the status for a terminal.
func Table(w io.Writer, status campaign.Status) error {
	s := newSheet(status)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "TARGET\tSTATE\tPULL REQUEST\tRUN\tNOTE")
	for _, r := range s.Rows {
		pull := ""
		if r.Pull > 0 {
			pull = fmt.Sprintf("#%d", r.Pull)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", progress.Printable(markdown.Cut(r.Name, 120)), r.Words, pull, progress.Printable(r.Run), progress.Printable(markdown.Cut(r.Note, 120)))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	var counts []string
	for _, c := range s.Counts {
		counts = append(counts, fmt.Sprintf("%d %s", c.Targets, c.Words))
	}
	lines := append([]string{transcript.Count(s.Total, "target") + ": " + strings.Join(counts, ", ")}, s.Lines...)
	if s.Folder != "" {
		lines = append(lines, "The directories of RUN are in "+s.Folder)
	}
	if s.Wait != "" {
		lines = append(lines, s.Wait)
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(w, progress.Printable(line)); err != nil {
			return err
		}
	}
	return nil
}
