package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/agent-ci/agent-ci/runner/artifact"
	"github.com/agent-ci/agent-ci/runner/progress"
)

func fetchCommand() command {
	return command{
		name:  "fetch",
		args:  "OWNER/REPO RUN | ADDRESS [--artifact NAME] [--out DIR]",
		about: "download a run from GitHub Actions and show its report",
		details: `
RUN is the number of a workflow run, or give the address of its page alone. The
artifact of agent-ci is downloaded with GITHUB_TOKEN (actions: read), which goes to
GitHub's API only, and unpacked within limits. The transcript's chain and the digests
of the files are checked. The report is made here; a page in the artifact is never
opened.

On a terminal the report opens in your browser ($BROWSER, else the desktop's), and
its path is printed. The run directory is in your cache folder, or in --out.

The chain shows that nothing was altered later. Who can write to the workflow's
runner can write a chain of their own.`,
		example: `
agent-ci fetch octo-org/widgets 16412345678
agent-ci fetch https://github.com/octo-org/widgets/actions/runs/16412345678`,
		takes:  operands{1, 2, "it takes OWNER/REPO and a run of a workflow, or the address of one"},
		define: fetch,
	}
}

func fetch(flags *flagSet) deed {
	var o artifact.Options
	var stay bool
	flags.text(&o.Name, "artifact", "NAME", "which artifact, where the run has several")
	flags.text(&o.Out, "out", "DIR", "run directory, new or empty (default: among the user's caches)")
	flags.on(&stay, "no-open", "print the path of the report, also on a terminal")
	return func(ctx context.Context, p process, rest []string) int {
		ctx, stop := untilSignal(ctx)
		defer stop()
		o.Words, o.Environ, o.Version = rest, p.environ, version
		fetched, err := artifact.Fetch(ctx, o)
		if ctx.Err() != nil {
			err = errors.New("it was interrupted, and nothing was kept")
		}
		if err != nil {
			return failed(p, "fetch", err)
		}
		tellFetched(p, fetched)
		if _, err := fmt.Fprintln(p.stdout, fetched.Report); err != nil {
			return exitFailed
		}
		if !stay && onTerminal(p) {
			if err := openPage(p, fetched.Report); err != nil {
				fmt.Fprintf(p.stderr, "The report is not shown: %s.\n", progress.Printable(err.Error()))
			}
		}
		return exitOK
	}
}

// tellFetched says what came, on standard error: the path alone is the output.
func tellFetched(p process, f *artifact.Fetched) {
	ending := "it has not ended"
	if end := f.View.Finished; end != nil {
		ending = fmt.Sprintf("%s/%s: %s", end.Outcome, end.Reason, end.Message)
	}
	const most = 500 // characters; whoever made the transcript may have written any number
	fmt.Fprintf(p.stderr, "run %s, %s\n", cut(progress.Printable(f.View.Started.RunID), most), cut(progress.Printable(ending), most))
	fmt.Fprintf(p.stderr, "the chain is whole and ends in %s\n", f.Head)
	for _, note := range f.Notes {
		fmt.Fprintln(p.stderr, progress.Printable(note))
	}
}
