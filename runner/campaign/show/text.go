package show

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/publish/progress"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// Table writes the status as a table for a terminal.
func Table(w io.Writer, s campaign.Status) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "TARGET\tSTATE\tPULL REQUEST\tRUN\tNOTE")
	folder := "" // of run directories
	for _, r := range s.Targets {
		run := ""
		if r.Directory != "" {
			folder, run = filepath.Dir(r.Directory), filepath.Base(r.Directory)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", progress.Printable(markdown.Cut(targetName(r.Target), 120)), classStyles[r.Class].words, pullLinkText("", r), progress.Printable(run), progress.Printable(markdown.Cut(targetNote(r), 120)))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	var counts []string
	for _, c := range usedClasses(s) {
		counts = append(counts, fmt.Sprintf("%d %s", s.Counts[c], classStyles[c].words))
	}
	if len(s.Targets) == 0 {
		counts = []string{"the list, the file and the queries of targets name none"}
	}
	lines := append([]string{transcript.CountNoun(len(s.Targets), "target") + ": " + strings.Join(counts, ", ")}, describeCosts(s)...)
	if folder != "" {
		lines = append(lines, "The directories of RUN are in "+folder)
	}
	if why := describeWait(s); why != "" {
		lines = append(lines, why)
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(w, progress.Printable(line)); err != nil {
			return err
		}
	}
	return nil
}
