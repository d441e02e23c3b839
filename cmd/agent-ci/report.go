package main

import (
	"context"
	"fmt"

	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/progress"
	"github.com/agent-ci/agent-ci/runner/record"
)

func reportCommand() command {
	return command{
		name:  "report",
		args:  "RUN_DIR | --last [--format html | --format markdown] [--verify]",
		about: "show a run as a page, or check that its record was not altered",
		details: `
Without flags it writes RUN_DIR/report.html, one file that loads nothing, and prints
its path. agent-ci run does the same at its end. RUN_DIR may be the id of a run in
agent-ci runs; --last is the newest one. --format markdown prints the run as one
document.

--verify follows the chain of digests through the transcript and compares result.json
and the other files of the run with it. The exit status is 1 if something was altered,
removed or added. Files that a workflow did not upload are reported, and are no fault.`,
		example: `
agent-ci report --last
agent-ci report run --format markdown > run.md
agent-ci report run --verify`,
		takes: runOrLast, define: report,
	}
}

func report(flags *flagSet) deed {
	var format string
	var verify, last bool
	flags.last(&last)
	flags.text(&format, "format", "FORMAT", "html: write RUN_DIR/report.html (the default without --verify);\nmarkdown: print a document", "html", "markdown")
	flags.on(&verify, "verify", "check the transcript's chain")
	return func(ctx context.Context, p process, rest []string) int {
		switch {
		case format != "" && format != "html" && format != "markdown":
			return flags.wrong(p, "--format is html or markdown, not %s", format)
		case format == "" && !verify:
			format = "html"
		}
		dir, status := p.runOrLast("report", flags, rest, last)
		if status != exitOK {
			return status
		}
		if verify {
			if status := verifyRun(ctx, p, dir); status != exitOK {
				return status
			}
		}
		shown, err := showRun(dir, format)
		if err != nil {
			return failed(p, "report", err)
		}
		if _, err := fmt.Fprint(p.stdout, shown); err != nil {
			return exitFailed
		}
		return exitOK
	}
}

// runOrLast returns the directory of the run that is named, or with last of the newest. Where there
// is none, it says so and returns the exit status.
func (p process) runOrLast(command string, flags *flagSet, names []string, last bool) (dir string, status int) {
	switch {
	case len(names) == 0 && !last:
		return "", flags.wrong(p, "%s", runOrLast.problem)
	case len(names) > 0 && last:
		return "", flags.wrong(p, "--last and a run directory exclude each other")
	case len(names) > 0:
		return p.runDirectory(names[0]), exitOK
	}
	dir, err := p.newestRun()
	if err != nil {
		return "", failed(p, command, err)
	}
	return dir, exitOK
}

// newestRun returns the directory of the newest run of this machine.
func (p process) newestRun() (string, error) {
	machine := p.machine()
	list, err := machine.List()
	if err == nil && len(list) == 0 {
		folder, _ := machine.Path() // List has found it
		err = fmt.Errorf("there is no run yet in %s; name a run directory", folder)
	}
	if err != nil {
		return "", err
	}
	return list[0].Directory, nil
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
	fmt.Fprintf(p.stderr, "agent-ci %s: %v\n", name, outcome.Shortened(progress.Printable(err.Error())))
	return exitFailed
}
