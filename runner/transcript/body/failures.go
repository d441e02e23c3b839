package body

import (
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// Failures are the last lines of what setup commands and checks that failed printed,
// folded: of at most limit UTF-16 code units.
func Failures(v *transcript.View, limit int) string {
	s := failures(v)
	s.share = limit
	p := &page{left: limit}
	p.section(s)
	return p.String()
}

// failures stand beside the table, since the files that have them are gone with the
// machine of a job.
func failures(v *transcript.View) section {
	s := section{head: "\n", most: 10, share: 16_000, more: "output"}
	for _, step := range v.Setup {
		if step.Tail != "" {
			s.rows = append(s.rows, lastLines("setup "+step.Name, "failed", step.Tail))
		}
	}
	if v.Verify == nil {
		return s
	}
	for _, row := range v.Verify.Rows {
		if !row.Passed && row.After != "" && row.Tail != "" {
			s.rows = append(s.rows, lastLines(row.Name, row.After, row.Tail))
		}
	}
	return s
}

func lastLines(name, end, tail string) string {
	return "<details>\n<summary>The last lines of <b>" + htmlText(name) + "</b> (" + htmlText(end) + ")</summary>\n\n" +
		markdown.Fence(tail, "") + "\n</details>\n"
}
