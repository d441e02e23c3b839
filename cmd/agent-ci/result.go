package main

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/runner/publish/progress"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// showResult prints how a run ended on out, and its problems and errors on errs.
func showResult(out, errs io.Writer, r record.Result) {
	if len(r.Problems) > 1 { // a single one is the message
		for _, problem := range r.Problems {
			fmt.Fprintln(errs, progress.Printable(problem))
		}
	}
	for _, problem := range r.Errors {
		fmt.Fprintf(errs, "agent-ci: could not be written: %s\n", progress.Printable(problem))
	}
	fmt.Fprintf(out, "%s/%s: %s\n", r.Outcome, r.Reason, progress.Printable(r.Message))
	showChange(out, r)
	if r.Directory == "" {
		return
	}
	line := func(name, value string) { fmt.Fprintf(out, "%-13s %s\n", name+":", value) }
	if r.PullRequest.URL != "" {
		line("pull request", fmt.Sprintf("%s (%s)", progress.Printable(r.PullRequest.URL), r.PullRequest.Operation))
	}
	if r.BodyFile != "" {
		line("body", filepath.Join(r.Directory, r.BodyFile))
	}
	if r.ReportFile != "" {
		line("report", filepath.Join(r.Directory, r.ReportFile))
	}
	if r.Worked {
		line("commands", confinement(r.Sandbox))
	}
	if r.File != "" {
		line("result", filepath.Join(r.Directory, r.File))
	}
}

// confinement describes how commands were confined.
func confinement(c record.Confinement) string {
	if len(c.Layers) == 0 {
		return "ran UNCONFINED, with all rights of this user"
	}
	return "were confined: " + c.Level + " (work tree: " + c.WorkTree + ")" // the log and result.json list the layers
}

func showChange(out io.Writer, r record.Result) {
	if r.Branch != "" {
		fmt.Fprintf(out, "%-13s %s (%.12s)\n", "branch:", progress.Printable(r.Branch), r.HeadSHA)
	}
	if r.Changes == nil {
		return
	}
	const maxFiles = 20
	for i, f := range r.Stat {
		if i == maxFiles {
			fmt.Fprintf(out, "  … %d more files\n", len(r.Stat)-maxFiles)
			break
		}
		fmt.Fprintln(out, "  "+statLine(f))
	}
	fmt.Fprintf(out, "  %s, +%d -%d\n", outcome.CountNoun(r.Changes.Files, "file"), r.Changes.Insertions, r.Changes.Deletions)
}

func statLine(f changeset.File) string {
	if f.Binary {
		return fmt.Sprintf("%s %s (binary)", f.Status, markdown.FileName(f.Path))
	}
	return fmt.Sprintf("%s %s +%d -%d", f.Status, markdown.FileName(f.Path), f.Insertions, f.Deletions)
}
