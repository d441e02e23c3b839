package main

import (
	"context"
	"fmt"

	"github.com/agent-ci/agent-ci/runner/progress"
	"github.com/agent-ci/agent-ci/runner/record"
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
transcript, compares its end with result.json, and this and all other files of
the run but the page with what the transcript tells of them; the exit status is
1 when something was altered, taken away or added.`,
		example: `
agent-ci report run
agent-ci report run --format markdown > run.md
agent-ci report run --verify`,
		takes: oneRunDirectory, define: report,
	}
}

func report(flags *flagSet) deed {
	var format string
	var verify bool
	flags.text(&format, "format", "FORMAT", "html: write RUN_DIR/report.html (the default without --verify);\nmarkdown: print a document", "html", "markdown")
	flags.on(&verify, "verify", "check the transcript's chain")
	return func(ctx context.Context, p process, rest []string) int {
		switch {
		case format != "" && format != "html" && format != "markdown":
			return flags.wrong(p, "--format is html or markdown, not %s", format)
		case format == "" && !verify:
			format = "html"
		}
		if verify {
			if status := verifyRun(ctx, p, rest[0]); status != exitOK {
				return status
			}
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
}

// verifyRun tells what of a run directory is not as the run wrote it.
func verifyRun(ctx context.Context, p process, dir string) int {
	checked, err := record.CheckRun(ctx, dir)
	if err != nil {
		return failed(p, "report", err)
	}
	fmt.Fprintf(p.stderr, "the chain is whole and ends in %s\n", checked.Head)
	for _, note := range checked.Notes {
		fmt.Fprintln(p.stderr, progress.Printable(note))
	}
	for _, wrong := range checked.Wrong {
		fmt.Fprintln(p.stderr, progress.Printable(wrong))
	}
	if len(checked.Wrong) > 0 {
		return exitFailed
	}
	return exitOK
}

// showRun gives what to print of a run in a format; nothing for none.
func showRun(dir, format string) (string, error) {
	switch format {
	case "markdown":
		return record.Document(dir)
	case "html":
		path, err := record.Report(dir)
		return path + "\n", err
	}
	return "", nil
}

func failed(p process, name string, err error) int {
	fmt.Fprintf(p.stderr, "agent-ci %s: %v\n", name, progress.Printable(err.Error()))
	return exitFailed
}
