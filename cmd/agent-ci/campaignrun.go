package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github"
	"github.com/agent-ci/agent-ci/gitops/remote"
	"github.com/agent-ci/agent-ci/runner"
	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/campaign/here"
	"github.com/agent-ci/agent-ci/runner/campaign/pulls"
	"github.com/agent-ci/agent-ci/runner/campaign/resolve"
	"github.com/agent-ci/agent-ci/runner/campaign/show"
	"github.com/agent-ci/agent-ci/runner/intake"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/settings"
)

// spareTime is how much longer than its job lets it a run of a campaign may take.
const spareTime = time.Hour

// farewell is how long a run has to end in order.
const farewell = 2 * time.Minute

// runTargets runs the targets of a campaign on this machine, and shows how far the campaign is then.
func runTargets(ctx context.Context, p process, c *openedCampaign) (status int, err error) {
	if err := heldToClaims(p); err != nil {
		return exitFailed, err
	}
	return status, c.withLedger(func(l *campaign.Ledger, plan *campaign.Plan) error {
		if template, err := campaign.TemplateOf(c.Campaign); err != nil || template != plan.Template {
			return cmp.Or(err, errors.New("the job of the campaign is not that of its plan; make a new plan with agent-ci campaign plan"))
		}
		o, err := c.hereOptions(ctx, p, l, plan)
		if err != nil {
			return err
		}
		told := here.NewProgress(p.stderr, terminalWidth(p.stderr))
		o.Tell = told.Tell
		wait, err := here.Run(ctx, o)
		told.End()
		if err == nil && wait.Why == "" {
			err = o.Checkouts.Clear()
		}
		if stop := (*outcome.Stop)(nil); errors.As(err, &stop) {
			status = stop.ExitCode()
			err = nil
			fmt.Fprintln(p.stderr, "The campaign was interrupted; what was broken off goes on with the next agent-ci campaign run.")
		}
		if err != nil {
			return err
		}
		now := c.status(l.State, plan)
		if status == exitOK && (now.Failed() || now.Stopped != nil) {
			status = exitFailed
		}
		return show.Table(p.stdout, now)
	})
}

// runOptions say how a run of the campaign is made, wherever that is, and where its change goes.
func (c *openedCampaign) runOptions(p process) (o here.Options, publish string, err error) {
	program, err := os.Executable()
	if err != nil {
		return here.Options{}, "", fmt.Errorf("find the program: %w", err)
	}
	publish = c.publish
	switch {
	case c.Targets.Folder != "" && publish == "github":
		return here.Options{}, "", errors.New("the repositories of targets.folder are not on GitHub; leave --publish github out")
	case publish == "" && c.Targets.Folder == "" && settings.Environment(p.environ).Token() != "":
		publish = "github"
	case publish == "":
		publish = "local"
	}
	args := []string{"--publish", publish}
	if c.replay != "" {
		session, err := filepath.Abs(c.replay)
		if err != nil {
			return here.Options{}, "", fmt.Errorf("find the session: %w", err)
		}
		args = append(args, "--replay", session)
	}
	j, err := c.sampleJob(p)
	if err != nil {
		return here.Options{}, "", err
	}
	return here.Options{
		Campaign: c.Campaign, Program: program, Environ: p.environ, Args: args, Now: time.Now, Spare: spareTime, Farewell: farewell, Resumable: runner.Resumable,
		Models: runner.ModelsOf(j, p.environ),
	}, publish, nil
}

// hereOptions say how targets are run here.
func (c *openedCampaign) hereOptions(ctx context.Context, p process, l *campaign.Ledger, plan *campaign.Plan) (here.Options, error) {
	o, publish, err := c.runOptions(p)
	if err != nil {
		return here.Options{}, err
	}
	ledger, err := filepath.Abs(c.ledger)
	if err != nil {
		return here.Options{}, fmt.Errorf("find the ledger: %w", err)
	}
	o.Ledger, o.Plan, o.Folder, o.Wait = l, plan, campaign.Folder(ledger, c.Name), c.wait
	environ := settings.Environment(p.environ)
	if environ.Get(settings.PaceVariable) == "" {
		folder := cmp.Or(record.CampaignsPath(p.variable), ledger) // one for all ledgers of the user
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return here.Options{}, fmt.Errorf("make the folder of the pace file: %w", err)
		}
		environ = append(slices.Clone(environ), settings.PaceVariable+"="+filepath.Join(folder, "pace"))
	}
	o.Environ = apart(environ, ledger)
	api, server := github.Addresses(p.variable)
	git := gitops.FindGit(p.variable("PATH"), "")
	if _, err := gitops.CheckGit(ctx, git); err != nil {
		return here.Options{}, err
	}
	o.Checkouts = &here.Checkouts{
		Folder: filepath.Join(o.Folder, "mirrors"), Git: git, Keep: publish != "github",
		Remote: func(repository string) remote.Remote {
			return remote.Remote{URL: server + "/" + repository + ".git", Token: environ.Token(), Path: p.variable("PATH")}
		},
	}
	if c.Targets.Folder != "" {
		repositories, err := filepath.Abs(string(c.repositories()))
		if err != nil {
			return here.Options{}, fmt.Errorf("find the folder of the repositories: %w", err)
		}
		o.Checkouts.Only = true
		o.Checkouts.Remote = func(repository string) remote.Remote {
			return remote.Remote{URL: resolve.Repositories(repositories).Path(repository), Path: p.variable("PATH")}
		}
	}
	if publish != "github" {
		return o, nil
	}
	client, err := github.New(github.Options{APIURL: api, ServerURL: server, Token: environ.Token(), UserAgent: "agent-ci/" + version, Pace: environ.Get(settings.PaceVariable)})
	if err != nil {
		return here.Options{}, err
	}
	o.Refresh = func(ctx context.Context) error {
		_, err := pulls.Refresh(ctx, client, l, c.Campaign, plan)
		return err
	}
	o.Existing = c.existing(client)
	return o, nil
}

// apart is an environment of runs whose commands see nothing of the other runs in a folder.
func apart(environ []string, folder string) []string {
	return append(slices.Clone(environ), settings.CampaignVariable+"="+folder)
}

// existing looks for open pull requests of targets; nil where they are no reason to leave one out.
func (c *openedCampaign) existing(client forge.Forge) func(context.Context, []campaign.Target) (map[string]string, error) {
	if c.OnExisting != "skip" {
		return nil
	}
	return func(ctx context.Context, targets []campaign.Target) (map[string]string, error) {
		return openPulls(ctx, client, targets)
	}
}

// openPulls are the addresses of the open pull requests of targets' branches, by the targets' keys.
func openPulls(ctx context.Context, client forge.Forge, targets []campaign.Target) (map[string]string, error) {
	var questions []forge.Question
	for _, t := range targets {
		questions = append(questions, forge.Question{Repository: t.Repository, Head: intake.BranchPrefix + t.Key})
	}
	found, err := client.Survey(ctx, questions)
	if err != nil {
		return nil, err
	}
	open := map[string]string{}
	for i, f := range found {
		if f.Open != nil {
			open[targets[i].Key] = f.Open.URL
		}
	}
	return open, nil
}

// terminalWidth is how many columns a terminal has; 0 where it is none.
func terminalWidth(stream any) int {
	file, ok := stream.(*os.File)
	if !ok {
		return 0
	}
	window, err := windowOf(file)
	if err != nil {
		return 0
	}
	return int(window.Columns)
}
