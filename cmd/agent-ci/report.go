package main

import (
	"context"
	"fmt"

	"github.com/agent-ci/agent-ci/runner"
)

func reportCommand() command {
	return command{
		name:  "report",
		args:  "RUN_DIR (--format markdown | --verify)",
		about: "show a run as a document, or check that its transcript is as it was written",
		details: `
The document goes to standard output. --verify follows the chain of digests
through the transcript and compares its end with result.json; the exit status
is 1 when they don't fit.`,
		example: `
agent-ci report run --format markdown > run.md
agent-ci report run --verify`,
		run: report,
	}
}

func report(_ context.Context, p process, args []string) int {
	var format string
	var verify bool
	flags := newFlags(reportCommand())
	flags.text(&format, "format", "FORMAT", "markdown; html is not supported yet")
	flags.on(&verify, "verify", "check the transcript's chain")
	rest, status, done := flags.parse(p, args)
	switch {
	case done:
		return status
	case len(rest) != 1:
		return flags.wrong(p, "it takes one run directory")
	case format == "html":
		return flags.wrong(p, "--format html is not supported yet; use --format markdown")
	case format != "" && format != "markdown":
		return flags.wrong(p, "--format is markdown, not %s", format)
	case format == "" && !verify:
		return flags.wrong(p, "say --format markdown, or --verify")
	}
	if verify {
		head, err := runner.CheckChain(rest[0])
		if err != nil {
			return failed(p, err)
		}
		fmt.Fprintf(p.stderr, "the chain is whole and ends in %s\n", head)
	}
	if format == "" {
		return exitOK
	}
	document, err := runner.Document(rest[0])
	if err != nil {
		return failed(p, err)
	}
	if _, err := fmt.Fprint(p.stdout, document); err != nil {
		return exitFailed
	}
	return exitOK
}

func failed(p process, err error) int {
	fmt.Fprintf(p.stderr, "agent-ci report: %v\n", printable(err.Error()))
	return exitFailed
}
