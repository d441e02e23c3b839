package runcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/cli"
	"github.com/agent-ci/agent-ci/policy/plainjson"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/publish/progress"
	"github.com/agent-ci/agent-ci/runner/record/runs"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

func RunsCommand() cli.Command {
	return cli.Command{
		Name:  "runs",
		Args:  "[prune] [FLAGS]",
		About: "list the runs on this machine, or remove old ones",
		Details: `
Lists the runs in the usual folder, and those that --out put elsewhere, newest first:
start, outcome, task and pull request. You can use the id in place of the run
directory in report, resume, replay and publish.

prune removes run directories older than --older-than, or not among the newest --keep;
with both, those that match both. An active run always stays. A run that can be resumed
stays without --resumable, a run whose only copy of the change is there without
--unpublished. Directories of --out are never removed. --dry-run only prints.`,
		Example: `
agent-ci runs
agent-ci runs --json
agent-ci runs prune --older-than 30d --keep 20 --dry-run`,
		Takes: cli.Operands{Most: 1, Problem: "its one subcommand is prune"}, Define: defineRuns,
	}
}

// defineRuns defines the flags of agent-ci runs. The function that it returns lists or prunes the runs.
func defineRuns(flags *cli.FlagSet) cli.RunFunc {
	var folder, age, keep string
	var asJSON bool
	var o runs.PruneOptions
	flags.Text(&folder, "in", "DIR", "folder with run directories (default: the usual one)")
	flags.Boolean(&asJSON, "json", "print JSON, with all runs and not only the newest 20")
	flags.Text(&age, "older-than", "AGE", "prune: remove runs last written before that (30d, 2w, 12h)")
	flags.Text(&keep, "keep", "N", "prune: leave the newest N")
	flags.Boolean(&o.Resumable, "resumable", "prune: also remove runs that can be resumed")
	flags.Boolean(&o.Unpublished, "unpublished", "prune: also remove runs whose change is only in their directory")
	flags.Boolean(&o.DryRun, "dry-run", "prune: only print what would be removed")
	return func(_ context.Context, p cli.Process, subcommand []string) error {
		machine := userRuns(p)
		machine.Folder = folder
		hasSubcommand := len(subcommand) == 1
		hasPruneFlag := age != "" || keep != "" || o != runs.PruneOptions{}
		switch {
		case hasSubcommand && subcommand[0] != "prune":
			return cli.Misuse("its one subcommand is prune")
		case !hasSubcommand && hasPruneFlag:
			return cli.Misuse("--older-than, --keep, --resumable, --unpublished and --dry-run are for agent-ci runs prune")
		case hasSubcommand && asJSON:
			return cli.Misuse("--json is for the list")
		case !hasSubcommand:
			return showRuns(p, machine, asJSON)
		}
		if err := setPruned(&o, age, keep); err != nil {
			return cli.Misuse("%w", err)
		}
		o.Now = time.Now()
		return pruneRuns(p, machine, o)
	}
}

// setPruned sets the age and number of the runs to prune from the values of --older-than and --keep.
func setPruned(o *runs.PruneOptions, age, keep string) (err error) {
	if age == "" && keep == "" {
		return errors.New("say what goes: --older-than AGE, --keep N, or both")
	}
	if age != "" {
		if o.Age, err = runs.ParseAge(age); err != nil {
			return fmt.Errorf("--older-than: %w; give days (30d), weeks (2w) or hours (12h)", err)
		}
	}
	if keep != "" {
		if o.Keep, err = strconv.Atoi(keep); err != nil || o.Keep < 0 {
			return fmt.Errorf("--keep: %q is no number of runs", keep)
		}
	}
	return nil
}

// runsList is the output of --json.
type runsList struct {
	Version int        `json:"version"`
	Runs    []runs.Run `json:"runs"`
}

// maxListed is how many runs the table shows.
const maxListed = 20

// showRuns lists runs: the newest ones as a table, or all as JSON.
func showRuns(p cli.Process, machine runs.Store, asJSON bool) error {
	list, err := machine.List()
	if err != nil {
		return err
	}
	if asJSON {
		if list == nil {
			list = []runs.Run{}
		}
		return plainjson.Write(p.Stdout, runsList{Version: 1, Runs: list})
	}
	if len(list) == 0 {
		folder, _ := machine.Path() // no error: List used the same path
		p.Note("There are no runs in %s.", folder)
		return nil
	}
	shown := list[:min(len(list), maxListed)]
	if err := writeRuns(p.Stdout, shown); err != nil {
		return err
	}
	if more := len(list) - len(shown); more > 0 {
		p.Note("There are %d older ones; --json lists them.", more)
	}
	return nil
}

// writeRuns writes runs as a table with a heading.
func writeRuns(to io.Writer, list []runs.Run) error {
	const widestTask, widestEnding, longestURL = 48, 60, 200
	rows := [][]string{{"RUN", "STARTED", "OUTCOME", "TASK", "PULL REQUEST"}}
	for _, r := range list {
		rows = append(rows, []string{r.ID, r.Started.Local().Format("2006-01-02 15:04"), cutText(describeState(r), widestEnding), cutText(describeTask(r), widestTask), cutText(progress.Printable(r.PullRequest.URL), longestURL)})
	}
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	return table.Flush()
}

// describeState returns a run's outcome and reason. For one without an outcome it says active or interrupted.
func describeState(r runs.Run) string {
	state := ""
	switch r.State {
	case runs.GoingOn:
		state = "going on"
	case runs.Interrupted:
		state = "interrupted"
	case runs.Ended:
		state = progress.Printable(fmt.Sprintf("%s/%s", r.Outcome, r.Reason))
	}
	if r.Resumable {
		state += ", can be resumed"
	}
	return state
}

// describeTask returns the run's task as one line.
func describeTask(r runs.Run) string {
	return progress.Printable(strings.TrimSpace(r.Issue + " " + r.Task))
}

// cutText shortens text to maxChars characters. It returns "none" for an empty text.
func cutText(text string, maxChars int) string {
	return cmp.Or(markdown.Cut(text, maxChars), "none")
}

// pruneRuns removes runs and prints a line for each.
func pruneRuns(p cli.Process, machine runs.Store, o runs.PruneOptions) error {
	list, err := machine.Prune(o)
	if err != nil {
		return err
	}
	status, count, bytes, verb := cli.ExitOK, 0, int64(0), "removed"
	if o.DryRun {
		verb = "would remove"
	}
	for _, r := range list {
		switch {
		case r.Err != nil:
			p.Note("agent-ci runs: %v", r.Err)
			status = cli.ExitFailed
		case r.KeptReason != "":
			p.Print("kept %s: %s", r.ID, r.KeptReason)
		default:
			count, bytes = count+1, bytes+r.Bytes
			p.Print("%s %s (%s, %s)", verb, r.ID, formatSize(r.Bytes), cutText(describeTask(r.Run), 60))
		}
	}
	isUsualFolder := machine.Folder == ""
	if isUsualFolder && !o.DryRun {
		folder, _ := machine.Path() // no error: Prune used the same path
		if err := confine.DropAbandonedTrees(folder); err != nil {
			p.Note("agent-ci runs: remove work trees of runs that were removed: %v", err)
			status = cli.ExitFailed
		}
	}
	p.Print("%s %s, %s", verb, transcript.CountNoun(count, "run"), formatSize(bytes))
	return cli.Exit(status, nil)
}

// formatSize formats a number of bytes with a suitable unit, such as 1.5 MiB.
func formatSize(bytes int64) string {
	switch {
	case bytes >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%d KiB", (bytes+1023)>>10) // rounded up
}
