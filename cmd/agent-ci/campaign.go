package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/runner"
	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/campaign/show"
	"github.com/agent-ci/agent-ci/runner/given"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/progress"
	"github.com/agent-ci/agent-ci/runner/record"
)

func campaignCommand() command {
	return command{
		name:  "campaign",
		args:  "SUBCOMMAND CAMPAIGN.yml [FLAGS]",
		about: "run one job over many repositories and issues",
		details: `
plan      resolve the targets and freeze them; no model is asked
run       run the targets that may start, until none may
approve   let the targets behind the pilot run
status    tell how far the campaign is
resume    go on with a campaign that was stopped, and run again what failed
settle    book what runs elsewhere came to
close     close the pull requests of the campaign
export    write a line for each target

run ends with 0 where every run that ended came to a good end, with 1 where one
did not or the campaign is stopped, with 130 or 143 where a signal ended it.

docs/campaigns.md tells what stands in the file, how a budget holds, and how the
same file runs here, in GitHub Actions and on Kubernetes.`,
		example: `
agent-ci campaign plan bump.yml
agent-ci campaign run bump.yml`,
		takes: operands{2, 2, "it takes a subcommand and a campaign file"}, define: runCampaign, waits: true,
	}
}

// campaignFlags are those of all subcommands of agent-ci campaign.
type campaignFlags struct {
	ledger string
	reason string
	by     string
	format string

	publish string
	replay  string
	wait    bool
}

// campaignDeed is what a subcommand does with a campaign.
type campaignDeed func(ctx context.Context, p process, c *openedCampaign) (status int, err error)

// campaignDeeds are the subcommands, each with the flags that are its own.
var campaignDeeds = map[string]struct {
	flags []string
	do    campaignDeed
}{
	"approve": {[]string{"by"}, approveCampaign},
	"export":  {[]string{"format"}, exportCampaign},
	"resume":  {[]string{"by", "reason"}, resumeCampaign},
	"run":     {[]string{"publish", "replay", "wait"}, runTargets},
	"status":  {[]string{"format"}, campaignStatus},
}

// commonCampaignFlags are those of all subcommands.
var commonCampaignFlags = []string{"ledger"}

// openedCampaign is a campaign file that was read, with what the command line says of it.
type openedCampaign struct {
	*job.Campaign
	campaignFlags
	file string
}

func runCampaign(flags *flagSet) deed {
	var f campaignFlags
	flags.text(&f.ledger, "ledger", "DIR", "folder of the ledger (default: campaigns in the user's state folder)")
	flags.text(&f.by, "by", "NAME", "approve, resume: who says so (default: the user)")
	flags.text(&f.format, "format", "FORMAT", "status: table (default), json or markdown; export: csv (default) or json", "table", "json", "markdown", "csv")
	flags.text(&f.publish, "publish", "MODE", "run: as for agent-ci run (default: github where there is a token, else local)", runner.PublishModes()...)
	flags.text(&f.replay, "replay", "FILE", "run: take the model's answers from a scripted session")
	flags.on(&f.wait, "wait", "run: wait for what the time alone changes: a window, an hour, a day")
	flags.text(&f.reason, "reason", "REASON", "resume: run those again that ended with it, not all that failed")
	return func(ctx context.Context, p process, rest []string) int {
		name, file := rest[0], rest[1]
		sub, known := campaignDeeds[name]
		if !known {
			return flags.wrong(p, "%s", unknownSubcommand(name))
		}
		if foreign := flags.foreign(append(slices.Clone(sub.flags), commonCampaignFlags...)); foreign != "" {
			return flags.wrong(p, "--%s is not for agent-ci campaign %s", foreign, name)
		}
		ctx, stop := untilSignal(ctx)
		defer stop()
		c, problems, err := openCampaign(ctx, p, file, f)
		if len(problems) > 0 {
			showProblems(p, file, problems)
			return exitInvalid
		}
		status := exitOK
		if err == nil {
			status, err = sub.do(ctx, p, c)
		}
		if err != nil {
			return failed(p, "campaign "+name, err)
		}
		return status
	}
}

func unknownSubcommand(name string) string {
	names := slices.Sorted(maps.Keys(campaignDeeds))
	if meant := job.Nearest(name, names); meant != "" {
		return fmt.Sprintf("there is no subcommand %q; did you mean %s?", name, meant)
	}
	return fmt.Sprintf("there is no subcommand %q; they are %s", name, strings.Join(names, ", "))
}

// openCampaign reads a campaign file.
func openCampaign(ctx context.Context, p process, file string, f campaignFlags) (*openedCampaign, job.Problems, error) {
	raw, err := given.Read(ctx, file, job.MaxSize)
	if err != nil {
		return nil, nil, fmt.Errorf("read the campaign: %w", err)
	}
	beside := func(name string) ([]byte, error) {
		root, err := os.OpenRoot(filepath.Dir(file))
		if err != nil {
			return nil, err
		}
		defer root.Close()
		return given.ReadIn(root, name, job.MaxSize)
	}
	read, err := job.LoadCampaign(file, raw, beside)
	var problems job.Problems
	if errors.As(err, &problems) {
		return nil, problems, nil
	}
	if f.ledger == "" {
		f.ledger = record.CampaignsPath(p.variable)
	}
	if err == nil && f.ledger == "" {
		err = errors.New("no folder for the ledger is known; set HOME, or give one with --ledger")
	}
	return &openedCampaign{read, f, file}, nil, err
}

// who is on record for what a person decides.
func (c *openedCampaign) who(p process) string {
	for _, name := range []string{c.by, p.variable("GITHUB_ACTOR"), p.variable("USER")} {
		if name != "" {
			return progress.Printable(name)
		}
	}
	return "unknown"
}

// withLedger has something done with the ledger, which nobody else writes to meanwhile.
func (c *openedCampaign) withLedger(do func(*campaign.Ledger, *campaign.Plan) error) (err error) {
	ledger, err := campaign.Open(c.ledger, time.Now)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()
	plan, err := campaign.ReadPlan(c.ledger, c.Name, ledger.State)
	if err != nil {
		return err
	}
	return do(ledger, plan)
}

func approveCampaign(_ context.Context, p process, c *openedCampaign) (int, error) {
	return exitOK, c.withLedger(func(l *campaign.Ledger, plan *campaign.Plan) error {
		if err := l.Approve(c.Campaign, plan, c.who(p)); err != nil {
			return err
		}
		fmt.Fprintf(p.stdout, "%s is approved: the targets behind the pilot may run.\n", c.Name)
		return nil
	})
}

func resumeCampaign(_ context.Context, p process, c *openedCampaign) (int, error) {
	return exitOK, c.withLedger(func(l *campaign.Ledger, plan *campaign.Plan) error {
		again, err := l.Resume(c.Campaign, plan, c.reason, c.who(p))
		if err == nil {
			fmt.Fprintf(p.stdout, "%s goes on; %d targets run again with agent-ci campaign run.\n", c.Name, len(again))
		}
		return err
	})
}

// campaignForms are the forms in which a subcommand tells of a campaign; the first is the default.
var campaignForms = map[string][]string{"status": {"table", "json", "markdown"}, "export": {"csv", "json"}}

// writers write a status in a form.
var writers = map[string]func(io.Writer, campaign.Status) error{
	"table": show.Table, "markdown": show.Markdown, "csv": show.CSV,
	"json": func(w io.Writer, s campaign.Status) error { return writeJSON(w, s) },
}

func campaignStatus(_ context.Context, p process, c *openedCampaign) (int, error) {
	return c.tell(p, "status")
}

func exportCampaign(_ context.Context, p process, c *openedCampaign) (int, error) {
	return c.tell(p, "export")
}

// tell writes how far the campaign is, in the form that was asked for.
func (c *openedCampaign) tell(p process, name string) (int, error) {
	forms := campaignForms[name]
	form := cmp.Or(c.format, forms[0])
	if !slices.Contains(forms, form) {
		return exitInvalid, fmt.Errorf("--format is one of %s, not %s", strings.Join(forms, ", "), form)
	}
	state, err := campaign.Read(c.ledger)
	if err != nil {
		return exitFailed, err
	}
	plan, err := campaign.ReadPlan(c.ledger, c.Name, state)
	if err != nil {
		return exitFailed, err
	}
	return exitOK, writers[form](p.stdout, state.Status(time.Now(), c.Campaign, plan))
}
