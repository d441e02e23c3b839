package main

import (
	"context"
	"fmt"

	"github.com/agent-ci/agent-ci/runner"
)

func reportCommand() command {
	return command{
		name:  "report",
		args:  "RUN_DIR [--format html | --format markdown] [--verify]",
		about: "show a run as a page, or check that its transcript is as it was written",
		details: `
Without flags it writes RUN_DIR/report.html, one file that needs nothing else,
and prints its path; agent-ci run does so at its end. --format markdown prints
the run as one document. --verify follows the chain of digests through the
transcript and compares its end with result.json; the exit status is 1 when
they don't fit.`,
		example: `
agent-ci report run
agent-ci report run --format markdown > run.md
agent-ci report run --verify`,
		run: report,
	}
}

func report(_ context.Context, p process, args []string) int {
	var format string
	var verify bool
	flags := newFlags(reportCommand())
	flags.text(&format, "format", "FORMAT", "html: write RUN_DIR/report.html (the default without --verify);\nmarkdown: print a document")
	flags.choices["format"] = []string{"html", "markdown"}
	flags.on(&verify, "verify", "check the transcript's chain")
	rest, status, done := flags.parse(p, args)
	switch {
	case done:
		return status
	case len(rest) != 1:
		return flags.wrong(p, "it takes one run directory")
	case format != "" && format != "html" && format != "markdown":
		return flags.wrong(p, "--format is html or markdown, not %s", format)
	case format == "" && !verify:
		format = "html"
	}
	if verify {
		head, err := runner.CheckChain(rest[0])
		if err != nil {
			return failed(p, "report", err)
		}
		fmt.Fprintf(p.stderr, "the chain is whole and ends in %s\n", head)
	}
	shown, err := showRun(rest[0], format)
	if err != nil {
		return failed(p, "report", err)
	}
	if _, err := fmt.Fprint(p.stdout, shown); err != nil {
		return exitFailed
	}
	return exitOK
}

// showRun gives what to print of a run in a format; nothing for none.
func showRun(dir, format string) (string, error) {
	switch format {
	case "markdown":
		return runner.Document(dir)
	case "html":
		path, err := runner.Report(dir)
		return path + "\n", err
	}
	return "", nil
}

func failed(p process, name string, err error) int {
	fmt.Fprintf(p.stderr, "agent-ci %s: %v\n", name, runner.Printable(err.Error()))
	return exitFailed
}
