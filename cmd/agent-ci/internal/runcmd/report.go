package runcmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/cli"
	"github.com/agent-ci/agent-ci/runner/publish/artifact"
	"github.com/agent-ci/agent-ci/runner/publish/progress"
	"github.com/agent-ci/agent-ci/runner/record"
)

func ReportCommand() cli.Command {
	return cli.Command{
		Name:  "report",
		Args:  "RUN_DIR | --last | OWNER/REPO RUN | ADDRESS [FLAGS]",
		About: "show a run here or of GitHub Actions as a page; check its record",
		Details: `
Without flags it writes RUN_DIR/report.html, one file that loads nothing, and prints
its path. agent-ci run does the same at its end. RUN_DIR may be the id of a run in
agent-ci runs; --last is the newest one. --format markdown prints the run as one
document.

--verify follows the chain of digests through the transcript and compares result.json
and the other files of the run with it. The exit status is 1 if something was altered,
removed or added. Files that a workflow did not upload are reported, and are no fault.

OWNER/REPO RUN, or the address of a workflow run's page, is a run of GitHub Actions.
Its artifact is downloaded with GITHUB_TOKEN (actions: read), which goes to GitHub's
API only, and unpacked within limits into your cache folder or --out. Its chain and
digests are checked. A page in the artifact is never opened. The chain shows that
nothing was altered later. Who can write to the workflow's runner can write a chain
of their own.`,
		Example: `
agent-ci report --last
agent-ci report octo-org/widgets 16412345678
agent-ci report https://github.com/octo-org/widgets/actions/runs/16412345678
agent-ci report run --format markdown > run.md
agent-ci report run --verify`,
		Takes: cli.Operands{Most: 2, Problem: runOrLast.Problem + "; or OWNER/REPO and a run of a workflow, or its address"}, Define: defineReport,
	}
}

// defineReport defines the flags of agent-ci report. The function that it returns checks the record and prints
// the run, or the path of its page.
func defineReport(flags *cli.FlagSet) cli.RunFunc {
	var format string
	var verify, last bool
	flags.Last(&last)
	flags.Text(&format, "format", "FORMAT", "html: write RUN_DIR/report.html (the default without --verify);\nmarkdown: print a document", "html", "markdown")
	flags.Boolean(&verify, "verify", "check the transcript's chain")
	var o artifact.Options
	flags.Text(&o.Name, "artifact", "NAME", "of GitHub Actions: name of the artifact, if the run has several")
	flags.Text(&o.Out, "out", "DIR", "of GitHub Actions: run directory, new or empty (default: among the user's caches)")
	return func(ctx context.Context, p cli.Process, run []string) error {
		if !slices.Contains([]string{"", "html", "markdown"}, format) {
			return cli.Misuse("--format is html or markdown, not %s", format)
		}
		if format == "" && !verify {
			format = "html"
		}
		o.Words = run
		dir, page, err := locateRun(ctx, p, o, last)
		if err == nil && verify {
			err = verifyRun(ctx, p, dir)
		}
		if err != nil {
			return err
		}
		text, err := renderRun(dir, page, format)
		if err != nil {
			return err
		}
		_, err = fmt.Fprint(p.Stdout, text)
		return err
	}
}

// locateRun returns the directory of a local or downloaded run. page is a downloaded run's report, or "".
func locateRun(ctx context.Context, p cli.Process, o artifact.Options, last bool) (dir, page string, err error) {
	if !isOnGitHub(o.Words) {
		if o.Name != "" || o.Out != "" {
			return "", "", cli.Misuse("--artifact and --out are for a run of GitHub Actions: give OWNER/REPO and the run, or its address")
		}
		dir, err = runDirectoryOrLast(p, o.Words, last)
		return dir, "", err
	}
	if last {
		return "", "", cli.Misuse("--last and a run of GitHub Actions exclude each other")
	}
	ctx, stop := cli.UntilSignal(ctx)
	defer stop()
	o.Environ, o.Version = p.Environ, p.Version
	fetched, err := artifact.Fetch(ctx, o)
	if ctx.Err() != nil {
		err = errors.New("it was interrupted, and nothing was kept")
	}
	if err != nil {
		return "", "", err
	}
	printFetched(p, fetched)
	return fetched.Directory, fetched.Report, nil
}

// isOnGitHub reports whether the words name a run of GitHub Actions: OWNER/REPO and RUN, or an address.
func isOnGitHub(words []string) bool {
	isAddress := len(words) == 1 && (strings.Contains(words[0], "://") || strings.Contains(words[0], "/actions/runs/"))
	return isAddress || len(words) == 2
}

// printFetched describes a downloaded run on standard error, because standard output has only its report.
func printFetched(p cli.Process, f *artifact.Fetched) {
	ending := "it has not ended"
	if end := f.View.Finished; end != nil {
		ending = fmt.Sprintf("%s/%s: %s", end.Outcome, end.Reason, end.Message)
	}
	const maxChars = 500 // the transcript comes from strangers, so its texts may be long
	p.Note("run %s, %s", cutText(progress.Printable(f.View.Started.RunID), maxChars), cutText(progress.Printable(ending), maxChars))
	p.Note("the chain is whole and ends in %s", f.View.Head)
	for _, note := range f.Notes {
		p.Note("%s", note)
	}
}

// verifyRun prints which files of a run directory were altered, removed or added since the run's end. It
// returns an error if there are any.
func verifyRun(ctx context.Context, p cli.Process, dir string) error {
	checked, err := record.VerifyDirectory(ctx, dir)
	if err != nil {
		return err
	}
	p.Note("the chain is whole and ends in %s", checked.Head)
	for _, line := range slices.Concat(checked.Notes, checked.Differences) {
		p.Note("%s", line)
	}
	if len(checked.Differences) > 0 {
		return cli.Exit(cli.ExitFailed, nil)
	}
	return nil
}

// renderRun returns a run as a Markdown document or, for html, the path of its page as a line. For an empty
// format it returns "". If the page does not exist (page is ""), renderRun writes it.
func renderRun(dir, page, format string) (text string, err error) {
	switch {
	case format == "markdown":
		return record.RenderDocument(dir)
	case format == "":
		return "", nil
	case page == "":
		page, err = record.WriteReport(dir)
	}
	return page + "\n", err
}
