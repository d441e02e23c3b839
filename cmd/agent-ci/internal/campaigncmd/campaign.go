// Package campaigncmd has the command campaign with its subcommands.
package campaigncmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/cli"
	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/runcmd"
	"github.com/agent-ci/agent-ci/policy/plainjson"
	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/campaign/show"
	"github.com/agent-ci/agent-ci/runner/campaign/spec"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/publish/progress"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/boundedfile"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/config"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

func Command() cli.Command {
	return cli.Command{
		Name:    "campaign",
		Args:    "SUBCOMMAND CAMPAIGN.yml [RESULTS...] [FLAGS]",
		About:   "run one job over many repositories and issues",
		Details: campaignStatuses + "\n\n" + campaignResults + "\n\n" + campaignPage,
		Example: `
agent-ci campaign plan bump.yml
agent-ci campaign run bump.yml`,
		Takes: cli.Operands{Least: 1, Most: math.MaxInt, Problem: "it takes a subcommand and a campaign file"}, Subcommands: campaignSubcommands(), Define: defineCampaign, MostlyWaits: true,
	}
}

// Paragraphs of the help.
const (
	campaignStatuses = `
run exits with 0 if no target has failed, with 1 if one has or the campaign is
stopped, and with 130 or 143 if a signal ended it. work exits as its run does.`
	campaignResults = `RESULTS are folders in which agent-ci campaign work left reports, and files (- is
standard input) with the output of kubectl get jobs,pods -o json.`
	campaignPage = "docs/reference/campaign.md explains the file, the budget and the ledger."
)

// campaignFlags has the values of the flags of all subcommands.
type campaignFlags struct {
	ledger, reason, format, publish, replay string
	wave, index, out, report                string
	wait, over                              bool
}

// campaignAction is a subcommand with its function. forms lists its values of --format, the default first.
type campaignAction struct {
	cli.Subcommand
	forms []string
	do    func(ctx context.Context, c *openedCampaign) error
}

// settle is the only subcommand with arguments after the campaign file.
const settle = "settle"

// campaignActions returns the subcommands in order of use.
func campaignActions() []campaignAction {
	actions := []campaignAction{
		{
			Subcommand: cli.Subcommand{
				Name: "plan", About: "resolve the targets and freeze them, or hand out a wave; no model is asked",
				Example: "agent-ci campaign plan bump.yml\nagent-ci campaign plan bump.yml --format kubernetes | kubectl apply -f -",
				Flags:   []string{"format", "publish"},
			},
			forms: []string{"table", "json", "matrix", "kubernetes"}, do: planCampaign,
		}, {
			Subcommand: cli.Subcommand{
				Name: "run", About: "run targets until no further one may start", Details: campaignStatuses,
				Example: "agent-ci campaign run bump.yml",
				Flags:   []string{"publish", "replay", "wait"},
			},
			do: runTargets,
		}, {
			Subcommand: cli.Subcommand{Name: "approve", About: "let the targets after the pilot run", Example: "agent-ci campaign approve bump.yml"},
			do:         approveCampaign,
		}, {
			Subcommand: cli.Subcommand{
				Name: "status", About: "show the progress of the campaign",
				Example: "agent-ci campaign status bump.yml\nagent-ci campaign status bump.yml --format html > campaign.html",
				Flags:   []string{"format"},
			},
			forms: []string{"table", "json", "markdown", "html"}, do: campaignStatus,
		}, {
			Subcommand: cli.Subcommand{
				Name: "resume", About: "resume a stopped campaign, and rerun failed targets",
				Example: "agent-ci campaign resume bump.yml --reason model_failed/rate_limit",
				Flags:   []string{"reason"},
			},
			do: resumeCampaign,
		}, {
			Subcommand: cli.Subcommand{
				Name: "work", About: "run one target of a wave", Details: campaignStatuses,
				Example: "agent-ci campaign work bump.yml --wave wave.json --index 3 --out runs",
				Flags:   []string{"wave", "index", "out", "report", "publish", "replay"},
			},
			do: workOnTarget,
		}, {
			Subcommand: cli.Subcommand{
				Name: settle, Args: "CAMPAIGN.yml [RESULTS...] [FLAGS]", About: "book the results of runs elsewhere", Details: campaignResults,
				Example: "agent-ci campaign settle bump.yml runs\nkubectl get jobs,pods -o json | agent-ci campaign settle bump.yml -",
				Flags:   []string{"over"},
			},
			do: settleCampaign,
		}, {
			Subcommand: cli.Subcommand{Name: "close", About: "close the pull requests of the campaign, and delete their branches", Example: "agent-ci campaign close bump.yml"},
			do:         closeCampaign,
		},
	}
	for i := range actions {
		a := &actions[i]
		a.Args = cmp.Or(a.Args, "CAMPAIGN.yml [FLAGS]")
		a.Details += "\n\n" + campaignPage
		a.Flags = append(a.Flags, "ledger")
	}
	return actions
}

// campaignSubcommands returns the subcommands for help and completion.
func campaignSubcommands() (all []cli.Subcommand) {
	for _, action := range campaignActions() {
		all = append(all, action.Subcommand)
	}
	return all
}

// openedCampaign is a campaign file with the command line's options, opened by a process.
type openedCampaign struct {
	cli.Process
	*spec.Campaign
	campaignFlags
	file    string
	raw     []byte   // content of file
	results []string // RESULTS of the command line: folders and files with results of runs elsewhere
}

// defineCampaign defines the flags of all subcommands. The function that it returns runs the chosen subcommand.
func defineCampaign(flags *cli.FlagSet) cli.RunFunc {
	var f campaignFlags
	flags.Text(&f.ledger, "ledger", "DIR", "folder of the ledger (default: campaigns in the user's state folder)")
	flags.Text(&f.format, "format", "FORMAT", "plan: table (default) or json; matrix or kubernetes hands out the next wave;\nstatus: table (default), json, markdown or html", "table", "json", "matrix", "kubernetes", "markdown", "html")
	flags.Text(&f.publish, "publish", "MODE", "run, work: as for agent-ci run (default: github if a token is set, else local; with targets.folder local);\nplan --format kubernetes: the mode of its runs", publish.Modes()...)
	flags.Text(&f.replay, "replay", "FILE", "run, work: take the model's answers from a scripted session")
	flags.Boolean(&f.wait, "wait", "run: wait for the next window, or for a limit per hour or day")
	flags.Text(&f.reason, "reason", "REASON", "resume: rerun only targets that ended with this reason")
	flags.Text(&f.wave, "wave", "FILE", "work: file of the wave, from the ledger's folder")
	flags.Text(&f.index, "index", "N", "work: number of the run in the wave, from 0 (default: JOB_COMPLETION_INDEX)")
	flags.Text(&f.out, "out", "DIR", "work: folder of run directories; resumes a run that it finds there")
	flags.Text(&f.report, "report", "FILE", "work: also write the report of the run there")
	flags.Boolean(&f.over, "over", "settle: the wave is over; book runs without a report at their claim")
	return func(ctx context.Context, p cli.Process, words []string) error {
		name, operands := words[0], words[1:]
		all := campaignActions()
		i := slices.IndexFunc(all, func(a campaignAction) bool { return a.Name == name })
		if i < 0 {
			return cli.Misuse("%s", unknownSubcommand(name))
		}
		action := all[i]
		if len(action.forms) > 0 {
			f.format = cmp.Or(f.format, action.forms[0])
		}
		if problem := action.argumentProblem(f, flags.UnexpectedFlag(action.Flags), operands); problem != "" {
			return cli.Misuse("%s", problem)
		}
		file, results := operands[0], operands[1:]
		ctx, stop := cli.UntilSignal(ctx)
		defer stop()
		c, err := openCampaign(ctx, p, file, f)
		if err != nil {
			return cli.Exit(p.Report("campaign "+name, showProblems(p, file, err)), nil)
		}
		if conflict := c.localConflict(name); conflict != "" {
			return cli.Misuse("%s", conflict)
		}
		c.results = results
		return cli.Exit(p.Report("campaign "+name, action.do(ctx, c)), nil)
	}
}

// showProblems prints the mistakes of a campaign file if err has them. It returns the error that ends the command.
func showProblems(p cli.Process, file string, err error) error {
	if problems, are := errors.AsType[config.Problems](err); are {
		cli.ShowProblems(p, file, problems)
		return cli.Exit(cli.ExitInvalid, nil)
	}
	return err
}

// argumentProblem returns why flags and operands do not suit the subcommand, or "". foreign is a given
// flag that belongs to another subcommand, or "".
func (a campaignAction) argumentProblem(f campaignFlags, foreign string, operands []string) string {
	command := "agent-ci campaign " + a.Name
	switch {
	case len(operands) == 0:
		return command + " takes a campaign file"
	case foreign != "":
		return "--" + foreign + " is not for " + command
	case len(operands) > 1 && a.Name != settle:
		return command + " takes a campaign file and nothing else"
	case f.format != "" && !slices.Contains(a.forms, f.format):
		return fmt.Sprintf("--format of %s is one of %s, not %s", command, strings.Join(a.forms, ", "), f.format)
	case a.Name == "plan" && f.publish != "" && f.format != "kubernetes":
		return "--publish of agent-ci campaign plan is for --format kubernetes alone; leave it out"
	case f.publish != "" && !slices.Contains(publish.Modes(), f.publish):
		return fmt.Sprintf("--publish is one of %s, not %s", strings.Join(publish.Modes(), ", "), f.publish)
	}
	return ""
}

// localConflict returns why the subcommand name cannot run on local repositories (targets.folder). It
// returns "" if it can, or if the repositories are on GitHub.
func (c *openedCampaign) localConflict(name string) string {
	isHandout := handoutHosts[c.format] != ""
	needsGitHub := isHandout || slices.Contains([]string{"work", "close", settle}, name)
	if c.Targets.Folder == "" || !needsGitHub {
		return ""
	}
	conflicting := "agent-ci campaign " + name
	if isHandout {
		conflicting = "--format " + c.format
	}
	return conflicting + " is for repositories on GitHub, and those of this campaign are in a folder (targets.folder)"
}

// unknownSubcommand returns a message that suggests a similar subcommand, or lists all.
func unknownSubcommand(name string) string {
	var names []string
	for _, sub := range campaignSubcommands() {
		names = append(names, sub.Name)
	}
	if meant := config.Nearest(name, names); meant != "" {
		return fmt.Sprintf("there is no subcommand %q; did you mean %s?", name, meant)
	}
	return fmt.Sprintf("there is no subcommand %q; they are %s", name, strings.Join(names, ", "))
}

// openCampaign reads a campaign file and its job file. It returns mistakes in them as config.Problems.
func openCampaign(ctx context.Context, p cli.Process, file string, f campaignFlags) (*openedCampaign, error) {
	raw, err := boundedfile.Read(ctx, file, config.MaxSize)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read (%w); check the path", file, outcome.WithoutPath(err))
	}
	loaded, err := spec.Load(file, raw, ReaderBeside(file))
	if err != nil {
		return nil, err
	}
	if f.ledger = cmp.Or(f.ledger, record.CampaignsPath(p.Variable)); f.ledger == "" {
		err = errors.New("no folder for the ledger is known; set HOME, or give one with --ledger")
	}
	return &openedCampaign{Process: p, Campaign: loaded, campaignFlags: f, file: file, raw: raw}, err
}

// checkClaimVariables returns an error if a variable sets a key that only the campaign file may set. The
// variable could make a run exceed its claim.
func (c *openedCampaign) checkClaimVariables() error {
	variables, _ := job.Format().Environment(c.Environ, runcmd.ReservedVariables())
	for _, v := range variables.Values {
		if campaign.IsFileOnly(v.Key) {
			return fmt.Errorf("%s is set, and would change what a run may use behind its claim; unset it, and give %s in the campaign's job", v.Origin, v.Key)
		}
	}
	return nil
}

// ReaderBeside returns a function that reads files in the folder of the campaign file.
func ReaderBeside(file string) func(name string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		root, err := os.OpenRoot(filepath.Dir(file))
		if err != nil {
			return nil, err
		}
		defer root.Close()
		return boundedfile.ReadIn(root, name, config.MaxSize)
	}
}

// currentUser returns the name to record with a person's decision.
func (c *openedCampaign) currentUser() string {
	return progress.Printable(cmp.Or(c.Variable("GITHUB_ACTOR"), c.Variable("USER"), "unknown"))
}

// withLedger locks the ledger, calls do with it and the current plan, and unlocks it.
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

// approveCampaign lets the targets after the pilot run.
func approveCampaign(ctx context.Context, c *openedCampaign) error {
	by, err := c.approver(ctx)
	if err != nil {
		return err
	}
	return c.withLedger(func(l *campaign.Ledger, plan *campaign.Plan) error {
		if err := l.Approve(c.Campaign, plan, by); err != nil {
			return err
		}
		c.Print("%s is approved: the targets after the pilot may run.", c.Name)
		return nil
	})
}

// resumeCampaign lets a stopped campaign and its failed targets run again.
func resumeCampaign(_ context.Context, c *openedCampaign) error {
	return c.withLedger(func(l *campaign.Ledger, plan *campaign.Plan) error {
		again, err := l.Resume(c.Campaign, plan, c.reason, c.currentUser())
		if err == nil {
			c.Print("%s resumes; %d targets run again with agent-ci campaign run.", c.Name, len(again))
		}
		return err
	})
}

// campaignStatus shows the progress of the campaign.
func campaignStatus(_ context.Context, c *openedCampaign) error {
	state, err := campaign.Read(c.ledger)
	if err != nil {
		return err
	}
	plan, err := campaign.ReadPlan(c.ledger, c.Name, state)
	if err != nil {
		return err
	}
	return c.printStatus(c.status(state, plan))
}

// status returns the campaign's progress, with the run directories that exist on this machine.
func (c *openedCampaign) status(state *campaign.State, plan *campaign.Plan) campaign.Status {
	status := state.Status(time.Now(), c.Campaign, plan)
	status.Server = cmp.Or(c.Variable("GITHUB_SERVER_URL"), "https://github.com")
	if folder, err := filepath.Abs(campaign.Folder(c.ledger, c.Name)); err == nil {
		status.SetDirectories(folder)
	}
	return status
}

// printStatus writes a status in the requested format.
func (c *openedCampaign) printStatus(s campaign.Status) error {
	switch c.format {
	case "json":
		return plainjson.Write(c.Stdout, s)
	case "markdown":
		return show.Markdown(c.Stdout, s)
	case "html":
		return show.Page(c.Stdout, s)
	}
	return show.Table(c.Stdout, s)
}
