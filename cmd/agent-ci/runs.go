package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/publish/progress"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/runs"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/replay/history"
)

func runsCommand() command {
	return command{
		name:  "runs",
		args:  "[prune] [FLAGS]",
		about: "list the runs on this machine, or remove old ones",
		details: `
Lists the runs in the usual folder, and those that --out put elsewhere, newest first:
start, outcome, task and pull request. You can use the id in place of the run
directory in report, resume, replay and publish.

prune removes run directories older than --older-than, or not among the newest --keep;
with both, those that match both. An active run always stays. A run that can be resumed
stays without --resumable, a run whose only copy of the change is there without
--unpublished. Directories of --out are never removed. --dry-run only prints.`,
		example: `
agent-ci runs
agent-ci runs --json
agent-ci runs prune --older-than 30d --keep 20 --dry-run`,
		takes: operands{0, 1, "its one subcommand is prune"}, define: listRuns,
	}
}

// runsFlags has the values of the flags of agent-ci runs. Those after json belong to runs prune.
type runsFlags struct {
	folder            string
	json              bool
	age, keep         string
	resumable, dryRun bool
	unpublished       bool
}

// listRuns defines the flags of agent-ci runs. The function that it returns lists or prunes the runs.
func listRuns(flags *flagSet) runFunc {
	var f runsFlags
	flags.text(&f.folder, "in", "DIR", "folder with run directories (default: the usual one)")
	flags.boolean(&f.json, "json", "print JSON, with all runs and not only the newest 20")
	flags.text(&f.age, "older-than", "AGE", "prune: remove runs last written before that (30d, 2w, 12h)")
	flags.text(&f.keep, "keep", "N", "prune: leave the newest N")
	flags.boolean(&f.resumable, "resumable", "prune: also remove runs that can be resumed")
	flags.boolean(&f.unpublished, "unpublished", "prune: also remove runs whose change is only in their directory")
	flags.boolean(&f.dryRun, "dry-run", "prune: only print what would be removed")
	return func(_ context.Context, p process, rest []string) int {
		machine := p.machine()
		machine.Folder = f.folder
		hasPruneFlag := f.age != "" || f.keep != "" || f.resumable || f.unpublished || f.dryRun
		switch {
		case len(rest) == 1 && rest[0] != "prune":
			return flags.wrong(p, "its one subcommand is prune")
		case len(rest) == 0 && hasPruneFlag:
			return flags.wrong(p, "--older-than, --keep, --resumable, --unpublished and --dry-run are for agent-ci runs prune")
		case len(rest) == 1 && f.json:
			return flags.wrong(p, "--json is for the list")
		case len(rest) == 0:
			return showRuns(p, machine, f)
		}
		o, err := f.pruneOptions()
		if err != nil {
			return flags.wrong(p, "%v", err)
		}
		return pruneRuns(p, machine, o)
	}
}

// machine returns what finds this user's runs on this machine.
func (p process) machine() runs.Machine {
	return runs.Machine{Get: p.variable, Resumable: history.Resumable}
}

// runDirectory returns the directory of a run, given its path or id.
func (p process) runDirectory(name string) string { return p.machine().Find(name) }

// pruneOptions converts the flags of agent-ci runs prune.
func (f runsFlags) pruneOptions() (o runs.Prune, err error) {
	o = runs.Prune{Resumable: f.resumable, Unpublished: f.unpublished, DryRun: f.dryRun, Now: time.Now()}
	if f.age == "" && f.keep == "" {
		return o, errors.New("say what goes: --older-than AGE, --keep N, or both")
	}
	if f.age != "" {
		if o.Age, err = runs.ParseAge(f.age); err != nil {
			return o, fmt.Errorf("--older-than: %w; give days (30d), weeks (2w) or hours (12h)", err)
		}
	}
	if f.keep != "" {
		if o.Keep, err = strconv.Atoi(f.keep); err != nil || o.Keep < 0 {
			return o, fmt.Errorf("--keep: %q is no number of runs", f.keep)
		}
	}
	return o, nil
}

// runsList is the output of --json.
type runsList struct {
	Version int        `json:"version"`
	Runs    []runs.Run `json:"runs"`
}

// maxListed is how many runs the table shows.
const maxListed = 20

// showRuns lists runs: the newest ones as a table, or all as JSON.
func showRuns(p process, machine runs.Machine, f runsFlags) int {
	list, err := machine.List()
	if err != nil {
		return failed(p, "runs", err)
	}
	if f.json {
		if list == nil {
			list = []runs.Run{}
		}
		return written(writeJSON(p.stdout, runsList{Version: 1, Runs: list}))
	}
	if len(list) == 0 {
		folder, _ := machine.Path() // no error: List used the same path
		fmt.Fprintf(p.stderr, "There are no runs in %s.\n", progress.Printable(folder))
		return exitOK
	}
	shown := list[:min(len(list), maxListed)]
	if err := writeRuns(p.stdout, shown); err != nil {
		return exitFailed
	}
	if more := len(list) - len(shown); more > 0 {
		fmt.Fprintf(p.stderr, "There are %d older ones; --json lists them.\n", more)
	}
	return exitOK
}

// writeRuns writes runs as a table with a heading.
func writeRuns(to io.Writer, list []runs.Run) error {
	const widestTask, widestEnding, longestURL = 48, 60, 200
	rows := [][]string{{"RUN", "STARTED", "OUTCOME", "TASK", "PULL REQUEST"}}
	for _, r := range list {
		rows = append(rows, []string{r.ID, r.Started.Local().Format("2006-01-02 15:04"), cutText(describeState(r), widestEnding), cutText(taskOf(r), widestTask), cutText(progress.Printable(r.PullRequest.URL), longestURL)})
	}
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	return table.Flush()
}

// describeState returns a run's outcome and reason. For a run without an outcome it says whether the run is
// active or was interrupted.
func describeState(r runs.Run) string {
	words := map[string]string{runs.GoingOn: "going on", runs.Interrupted: "interrupted"}[r.State]
	if r.State == runs.Ended {
		words = progress.Printable(fmt.Sprintf("%s/%s", r.Outcome, r.Reason))
	}
	if r.Resumable {
		words += ", can be resumed"
	}
	return words
}

// taskOf returns the run's task as one line.
func taskOf(r runs.Run) string {
	return progress.Printable(strings.TrimSpace(r.Issue + " " + r.Task))
}

// cutText shortens text to maxChars characters. It returns "none" for an empty text.
func cutText(text string, maxChars int) string {
	return orNone(markdown.Cut(text, maxChars))
}

// pruneRuns removes runs and prints a line for each. It returns the exit status.
func pruneRuns(p process, machine runs.Machine, o runs.Prune) int {
	list, err := machine.Prune(o)
	if err != nil {
		return failed(p, "runs", err)
	}
	status, count, bytes := exitOK, 0, int64(0)
	did := map[bool]string{true: "would remove", false: "removed"}[o.DryRun]
	for _, r := range list {
		switch {
		case r.Err != nil:
			fmt.Fprintf(p.stderr, "agent-ci runs: %s\n", progress.Printable(r.Err.Error()))
			status = exitFailed
		case r.Kept != "":
			fmt.Fprintf(p.stdout, "kept %s: %s\n", r.ID, r.Kept)
		default:
			count, bytes = count+1, bytes+r.Bytes
			fmt.Fprintf(p.stdout, "%s %s (%s, %s)\n", did, r.ID, formatSize(r.Bytes), cutText(taskOf(r.Run), 60))
		}
	}
	if folder, err := machine.Path(); err == nil && !o.DryRun && machine.Folder == "" {
		if err := confine.DropAbandonedTrees(folder); err != nil {
			fmt.Fprintf(p.stderr, "agent-ci runs: remove work trees of runs that were removed: %v\n", err)
			status = exitFailed
		}
	}
	fmt.Fprintf(p.stdout, "%s %s, %s\n", did, outcome.CountNoun(count, "run"), formatSize(bytes))
	return status
}

// formatSize formats a number of bytes with a suitable unit, such as 1.5 MiB.
func formatSize(bytes int64) string {
	switch {
	case bytes >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%d KiB", (bytes+1023)>>10)
}
