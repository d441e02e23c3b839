package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/runner"
	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/campaign/pulls"
	"github.com/agent-ci/agent-ci/runner/campaign/show"
	"github.com/agent-ci/agent-ci/runner/given"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/progress"
	"github.com/agent-ci/agent-ci/runner/record"
)

func campaignCommand() command {
	return command{
		name:  "campaign",
		args:  "SUBCOMMAND CAMPAIGN.yml [RESULTS...] [FLAGS]",
		about: "run one job over many repositories and issues",
		details: `
run ends with 0 where every run that ended came to a good end, with 1 where one
did not or the campaign is stopped, with 130 or 143 where a signal ended it. work
ends as the run does, with 2 for what would end every target so and for that alone.

settle takes folders in which agent-ci campaign work left reports, and files (- is
standard input) with what kubectl get jobs,pods -o json prints.

docs/campaigns.md tells what stands in the file, how a budget holds, and what the
ledger keeps.`,
		example: `
agent-ci campaign plan bump.yml
agent-ci campaign run bump.yml`,
		takes: operands{2, math.MaxInt, "it takes a subcommand and a campaign file"}, subcommands: campaignSubcommands, define: runCampaign, waits: true,
	}
}

// campaignFlags are those of all subcommands of agent-ci campaign.
type campaignFlags struct {
	ledger string
	reason string
	by     string
	format string

	check          bool
	deleteBranches bool
	online         bool
	publish        string
	replay         string
	wait           bool

	wave   string
	index  string
	out    string
	report string
	over   bool
}

// campaignDeed is what a subcommand does with a campaign.
type campaignDeed func(ctx context.Context, p process, c *openedCampaign) (status int, err error)

// campaignDeeds are the subcommands, each with the flags that are its own.
var campaignDeeds = map[string]struct {
	flags []string
	do    campaignDeed
}{
	"approve": {[]string{"by"}, approveCampaign},
	"close":   {[]string{"delete-branches"}, closeCampaign},
	"export":  {[]string{"format"}, exportCampaign},
	"plan":    {[]string{"format", "check", "publish"}, planCampaign},
	"resume":  {[]string{"by", "reason"}, resumeCampaign},
	"run":     {[]string{"publish", "replay", "wait"}, runTargets},
	settle:    {[]string{"over"}, settleCampaign},
	"status":  {[]string{"format", "online"}, campaignStatus},
	"work":    {[]string{"wave", "index", "out", "report", "publish", "replay"}, workOnTarget},
}

// settle is the subcommand that takes more than a campaign file.
const settle = "settle"

// campaignHelp are the subcommands in the order in which they are used.
var campaignHelp = []struct{ name, about, example string }{
	{"plan", "resolve the targets and freeze them; no model is asked", "agent-ci campaign plan bump.yml\nagent-ci campaign plan bump.yml --format kubernetes | kubectl apply -f -"},
	{"run", "run the targets that may start, until none may", "agent-ci campaign run bump.yml"},
	{"approve", "let the targets behind the pilot run", "agent-ci campaign approve bump.yml --by octocat"},
	{"status", "tell how far the campaign is", "agent-ci campaign status bump.yml\nagent-ci campaign status bump.yml --format html > campaign.html"},
	{"resume", "go on with a campaign that was stopped, and have run again what failed", "agent-ci campaign resume bump.yml --reason model_failed/rate_limit"},
	{"work", "make one run of a wave that was handed out", "agent-ci campaign work bump.yml --wave wave.json --index 3 --out runs"},
	{settle, "book what runs elsewhere came to", "agent-ci campaign settle bump.yml runs\nkubectl get jobs,pods -o json | agent-ci campaign settle bump.yml -"},
	{"close", "close the pull requests of the campaign", "agent-ci campaign close bump.yml"},
	{"export", "write a line for each target", "agent-ci campaign export bump.yml > targets.csv"},
}

// campaignSubcommands are those that there are, as help and completion tell of them.
func campaignSubcommands() []subcommand {
	var all []subcommand
	for _, h := range campaignHelp {
		if deed, is := campaignDeeds[h.name]; is {
			args := "CAMPAIGN.yml [FLAGS]"
			if h.name == settle {
				args = "CAMPAIGN.yml [RESULTS...] [FLAGS]"
			}
			all = append(all, subcommand{h.name, args, h.about, h.example, append(slices.Clone(deed.flags), commonCampaignFlags...)})
		}
	}
	return all
}

// commonCampaignFlags are those of all subcommands.
var commonCampaignFlags = []string{"ledger"}

// openedCampaign is a campaign file that was read, with what the command line says of it.
type openedCampaign struct {
	*job.Campaign
	campaignFlags
	file    string
	raw     []byte   // of the file
	results []string // of runs elsewhere
}

func runCampaign(flags *flagSet) deed {
	var f campaignFlags
	flags.text(&f.ledger, "ledger", "DIR", "folder of the ledger (default: campaigns in the user's state folder)")
	flags.text(&f.by, "by", "NAME", "approve, resume: who says so (default: the user)")
	flags.text(&f.format, "format", "FORMAT", "plan: table (default) or json; matrix or kubernetes hands out the next wave;\nstatus: table (default), json, markdown or html; export: csv (default) or json", "table", "json", "matrix", "kubernetes", "markdown", "html", "csv")
	flags.text(&f.publish, "publish", "MODE", "run, work: as for agent-ci run (default: github where there is a token, else local; with targets.folder local);\nplan --format kubernetes: what the runs are told", runner.PublishModes()...)
	flags.text(&f.replay, "replay", "FILE", "run, work: take the model's answers from a scripted session")
	flags.on(&f.wait, "wait", "run: wait for what the time alone changes: a window, an hour, a day")
	flags.text(&f.reason, "reason", "REASON", "resume: run those again that ended with it, not all that failed")
	flags.on(&f.check, "check", "plan: also run applies_if of each target, in a clean tree on this machine")
	flags.on(&f.deleteBranches, "delete-branches", "close: delete the branches of the pull requests, too")
	flags.on(&f.online, "online", "status: ask the forge for the states of the pull requests first")
	flags.text(&f.wave, "wave", "FILE", "work: file of the wave, from the ledger's folder")
	flags.text(&f.index, "index", "N", "work: which run of the wave, from 0 (default: JOB_COMPLETION_INDEX)")
	flags.text(&f.out, "out", "DIR", "work: folder of run directories; what is there is gone on with")
	flags.text(&f.report, "report", "FILE", "work: also write the report of the run there")
	flags.on(&f.over, "over", "settle: nothing of the wave runs any more; what told nothing is booked at its claim")
	return func(ctx context.Context, p process, rest []string) int {
		name, file, results := rest[0], rest[1], rest[2:]
		sub, known := campaignDeeds[name]
		if !known {
			return flags.wrong(p, "%s", unknownSubcommand(name))
		}
		if foreign := flags.foreign(append(slices.Clone(sub.flags), commonCampaignFlags...)); foreign != "" {
			return flags.wrong(p, "--%s is not for agent-ci campaign %s", foreign, name)
		}
		if len(results) > 0 && name != settle {
			return flags.wrong(p, "agent-ci campaign %s takes a campaign file and nothing else", name)
		}
		if forms := campaignForms[name]; f.format != "" && len(forms) > 0 && !slices.Contains(forms, f.format) {
			return flags.wrong(p, "--format of agent-ci campaign %s is one of %s, not %s", name, strings.Join(forms, ", "), f.format)
		}
		if why := f.uselessFor(name); why != "" {
			return flags.wrong(p, "%s", why)
		}
		if f.publish != "" && !slices.Contains(runner.PublishModes(), f.publish) {
			return flags.wrong(p, "--publish is one of %s, not %s", strings.Join(runner.PublishModes(), ", "), f.publish)
		}
		ctx, stop := untilSignal(ctx)
		defer stop()
		c, problems, err := openCampaign(ctx, p, file, f)
		if len(problems) > 0 {
			showProblems(p, file, problems)
			return exitInvalid
		}
		if c != nil {
			c.results = results
		}
		if err == nil {
			if why := c.asksGitHub(name); why != "" {
				return flags.wrong(p, "%s", why)
			}
		}
		status := exitOK
		if err == nil {
			status, err = sub.do(ctx, p, c)
		}
		if err != nil {
			return max(failed(p, "campaign "+name, err), status)
		}
		return status
	}
}

// uselessFor says which flag of a subcommand has no use in the form that is asked for; empty for none.
func (f *campaignFlags) uselessFor(name string) string {
	switch {
	case name == "plan" && f.check && handouts[f.format] != nil:
		return "--check is not for --format " + f.format + ", which hands out a wave; leave one of them out"
	case name == "plan" && f.publish != "" && f.format != "kubernetes":
		return "--publish of agent-ci campaign plan is for --format kubernetes alone; leave it out"
	}
	return ""
}

// asksGitHub says why a subcommand cannot do what it is called for, where GitHub does not have the
// repositories; empty where it can.
func (c *openedCampaign) asksGitHub(name string) string {
	what := ""
	switch {
	case c.Targets.Folder == "":
		return ""
	case name == "work" || name == "close" || name == settle:
		what = "agent-ci campaign " + name
	case handouts[c.format] != nil:
		what = "--format " + c.format
	case c.check:
		what = "--check"
	case c.online:
		what = "--online"
	}
	if what == "" {
		return ""
	}
	return what + " is for repositories on GitHub, and those of this campaign are in a folder (targets.folder)"
}

func unknownSubcommand(name string) string {
	var names []string
	for _, sub := range campaignSubcommands() {
		names = append(names, sub.name)
	}
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
	read, problems, err := loadCampaign(file, raw)
	if err != nil || len(problems) > 0 {
		return nil, problems, err
	}
	if f.ledger == "" {
		f.ledger = record.CampaignsPath(p.variable)
	}
	if f.ledger == "" {
		err = errors.New("no folder for the ledger is known; set HOME, or give one with --ledger")
	}
	return &openedCampaign{Campaign: read, campaignFlags: f, file: file, raw: raw}, nil, err
}

// heldToClaims refuses variables that would have runs use more than the plan claims for them.
func heldToClaims(p process) error {
	variables, _ := job.Environment(p.environ, reserved())
	for _, v := range variables.Values {
		if campaign.OfFile(v.Key) {
			return fmt.Errorf("%s is set, and would change what a run may use behind its claim; unset it, and give %s in the campaign's job", v.Origin, v.Key)
		}
	}
	return nil
}

// beside reads files that a campaign file names.
func beside(file string) func(name string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		root, err := os.OpenRoot(filepath.Dir(file))
		if err != nil {
			return nil, err
		}
		defer root.Close()
		return given.ReadIn(root, name, job.MaxSize)
	}
}

// loadCampaign reads a campaign from what stands in its file, with the job beside it.
func loadCampaign(file string, raw []byte) (*job.Campaign, job.Problems, error) {
	read, err := job.LoadCampaign(file, raw, beside(file))
	var problems job.Problems
	if errors.As(err, &problems) {
		return nil, problems, nil
	}
	return read, nil, err
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

func approveCampaign(ctx context.Context, p process, c *openedCampaign) (int, error) {
	by, err := c.mayApprove(ctx, p)
	if err != nil {
		return exitFailed, err
	}
	return exitOK, c.withLedger(func(l *campaign.Ledger, plan *campaign.Plan) error {
		if err := l.Approve(c.Campaign, plan, by); err != nil {
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
var campaignForms = map[string][]string{"plan": {"table", "json", "matrix", "kubernetes"}, "status": {"table", "json", "markdown", "html"}, "export": {"csv", "json"}}

// writers write a status in a form.
var writers = map[string]func(io.Writer, campaign.Status) error{
	"table": show.Table, "markdown": show.Markdown, "html": show.Page, "csv": show.CSV,
	"json": func(w io.Writer, s campaign.Status) error { return writeJSON(w, s) },
}

func campaignStatus(ctx context.Context, p process, c *openedCampaign) (int, error) {
	if c.online {
		client, _, err := forgeOf(p)
		if err != nil {
			return exitFailed, err
		}
		if err := c.withLedger(func(l *campaign.Ledger, plan *campaign.Plan) error {
			_, err := pulls.Refresh(ctx, client, l, c.Campaign, plan)
			return err
		}); err != nil {
			return exitFailed, err
		}
	}
	return c.tell(p, "status")
}

func exportCampaign(_ context.Context, p process, c *openedCampaign) (int, error) {
	return c.tell(p, "export")
}

// status is how far the campaign is, with the run directories that this machine has.
func (c *openedCampaign) status(state *campaign.State, plan *campaign.Plan) campaign.Status {
	status := state.Status(time.Now(), c.Campaign, plan)
	if folder, err := filepath.Abs(campaign.Folder(c.ledger, c.Name)); err == nil {
		status.Locate(folder)
	}
	return status
}

// tell writes how far the campaign is, in the form that was asked for.
func (c *openedCampaign) tell(p process, name string) (int, error) {
	state, err := campaign.Read(c.ledger)
	if err != nil {
		return exitFailed, err
	}
	plan, err := campaign.ReadPlan(c.ledger, c.Name, state)
	if err != nil {
		return exitFailed, err
	}
	status := c.status(state, plan)
	status.Server = cmp.Or(p.variable("GITHUB_SERVER_URL"), "https://github.com")
	return exitOK, writers[c.form(name)](p.stdout, status)
}
