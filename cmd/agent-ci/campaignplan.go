package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github"
	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/runner"
	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/campaign/pulls"
	"github.com/agent-ci/agent-ci/runner/campaign/resolve"
	"github.com/agent-ci/agent-ci/runner/campaign/show"
	"github.com/agent-ci/agent-ci/runner/intake"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/progress"
	"github.com/agent-ci/agent-ci/runner/settings"
)

// forgeOf is the forge of the campaign's repositories, and the root of its pages.
func forgeOf(p process) (*github.Client, string, error) {
	api, server := github.Addresses(p.variable)
	env := settings.Environment(p.environ)
	if env.Token() == "" {
		return nil, "", errors.New("there is no GitHub token: set GITHUB_TOKEN to one that may read the targets, and push to them")
	}
	client, err := github.New(github.Options{APIURL: api, ServerURL: server, Token: env.Token(), UserAgent: "agent-ci/" + version})
	return client, server, err
}

// source has the repositories of the campaign: a folder of this machine, or the forge.
func (c *openedCampaign) source(p process) (from resolve.Forge, server string, err error) {
	if repositories := c.repositories(); repositories != "" {
		return repositories, "", nil
	}
	return forgeOf(p)
}

// repositories is the folder that targets.folder names; empty where the forge has the repositories.
func (c *openedCampaign) repositories() resolve.Repositories {
	if c.Targets.Folder == "" {
		return ""
	}
	return resolve.Repositories(filepath.Join(filepath.Dir(c.file), c.Targets.Folder))
}

// planCampaign resolves the targets, keeps the plan and tells what it comes to, or hands out a wave.
func planCampaign(ctx context.Context, p process, c *openedCampaign) (status int, err error) {
	ledger, err := campaign.Open(c.ledger, time.Now)
	if err != nil {
		return exitFailed, err
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()
	if handsOut := handouts[c.form("plan")]; handsOut != nil {
		return c.handOut(ctx, p, ledger, handsOut)
	}
	plan, err := c.plan(ctx, p, ledger)
	if err != nil {
		return c.unplanned(p, err)
	}
	j, err := c.sampleJob(p)
	if err != nil {
		return exitFailed, err
	}
	told := show.Planned{Plan: plan, Forecast: ledger.Forecast(c.Campaign, plan), Limits: campaign.LimitsOf(j), Budget: c.Budget}
	if c.check && c.AppliesIf != "" {
		if told.Applies, err = c.checkApplies(ctx, p, plan); err != nil {
			return exitFailed, err
		}
	}
	if c.form("plan") == "json" {
		return exitOK, writeJSON(p.stdout, told)
	}
	return exitOK, show.Plan(p.stdout, told)
}

// unplanned tells why there is no plan: of mistakes where they are.
func (c *openedCampaign) unplanned(p process, err error) (int, error) {
	if problems, are := errors.AsType[job.Problems](err); are {
		showProblems(p, c.file, problems)
		return exitInvalid, nil
	}
	return exitFailed, err
}

// plan makes the plan of the campaign, and has it hold.
func (c *openedCampaign) plan(ctx context.Context, p process, ledger *campaign.Ledger) (*campaign.Plan, error) {
	plan, err := c.resolve(ctx, p)
	if err != nil {
		return nil, err
	}
	if why := plan.Blocked(c.Budget); why != "" {
		return nil, fmt.Errorf("the campaign has a budget in dollars, and no run of it can be claimed: %s", why)
	}
	if ledger.Of(c.Name).Plan != "" {
		before, err := campaign.ReadPlan(c.ledger, c.Name, ledger.State)
		if err != nil {
			fmt.Fprintf(p.stderr, "The plan before this one is not looked at: %v.\n", progress.Printable(err.Error()))
		}
		plan.Keep(before, ledger.State)
	}
	return plan, ledger.Plan(plan)
}

// resolve makes the plan of the campaign, as it is now.
func (c *openedCampaign) resolve(ctx context.Context, p process) (*campaign.Plan, error) {
	if err := heldToClaims(p); err != nil {
		return nil, err
	}
	from, server, err := c.source(p)
	if err != nil {
		return nil, err
	}
	template, err := campaign.TemplateOf(c.Campaign)
	if err != nil {
		return nil, err
	}
	j, err := c.sampleJob(p)
	if err != nil {
		return nil, err
	}
	plan := &campaign.Plan{Version: campaign.PlanVersion, Campaign: c.Name, Template: template, Made: time.Now().UTC().Truncate(time.Second)}
	plan.Claim, plan.Unpriced = campaign.ClaimOf(j, runner.ModelsOf(j, p.environ))
	plan.Targets, err = resolve.Targets(ctx, resolve.Options{
		Campaign: c.Campaign, File: c.file, Folder: filepath.Dir(c.file), Forge: from, Server: server,
		Reads: j.Publish.Feedback(), Environ: policy.Environment(p.environ, nil, nil), Said: p.stderr,
	})
	return plan, err
}

// sampleJob is the job of a target, with a sample for what is of it.
func (c *openedCampaign) sampleJob(p process) (*job.Job, error) {
	raw, err := c.Job.Sample()
	if err != nil {
		return nil, err
	}
	variables, _ := job.Environment(p.environ, reserved())
	return job.LoadTemplate(job.Layer{Name: cmp.Or(c.JobFile, c.file), Kind: job.File, Data: raw}, variables)
}

// form is the form in which a subcommand tells of a campaign.
func (c *openedCampaign) form(name string) string { return cmp.Or(c.format, campaignForms[name][0]) }

// checkApplies asks the applies_if of each target that has to run yet, some at a time.
func (c *openedCampaign) checkApplies(ctx context.Context, p process, plan *campaign.Plan) (map[string]string, error) {
	folder, err := os.MkdirTemp("", "agent-ci-plan-")
	if err != nil {
		return nil, fmt.Errorf("make a temporary folder: %w", err)
	}
	defer os.RemoveAll(folder)
	var mu sync.Mutex
	told := map[string]string{}
	var group sync.WaitGroup
	places := make(chan struct{}, min(c.Rollout.AtOnce, runtime.NumCPU()))
	for _, t := range plan.Targets {
		if t.Lacks != "" || ctx.Err() != nil {
			continue
		}
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			answer := c.checkOne(ctx, p, folder, t)
			mu.Lock()
			defer mu.Unlock()
			told[t.Key] = answer
		})
	}
	group.Wait()
	return told, context.Cause(ctx)
}

// checkOne says whether the job applies to a target: yes, no, or why that is not known.
func (c *openedCampaign) checkOne(ctx context.Context, p process, folder string, t campaign.Target) string {
	filled, err := campaign.JobOf(c.Campaign, t)
	if err != nil {
		return err.Error()
	}
	file := filepath.Join(folder, t.Key+".yml")
	if err := os.WriteFile(file, filled, 0o600); err != nil {
		return err.Error()
	}
	around := surroundings(p, true)
	around.Step = nil
	around.Environ = outsideOfStep(p.environ)
	err = runner.Applies(ctx, file, around)
	stop, is := errors.AsType[*outcome.Stop](err)
	switch {
	case err == nil:
		return "yes"
	case is && stop.Reason == campaign.ReasonNotApplicable:
		return "no"
	case is:
		return stop.Message
	}
	return err.Error()
}

// outsideOfStep is an environment without the event of a workflow, which is about no target.
func outsideOfStep(environ []string) []string {
	var kept []string
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		if name != "GITHUB_ACTIONS" && name != "GITHUB_EVENT_NAME" && name != "GITHUB_EVENT_PATH" && name != "GITHUB_REPOSITORY" {
			kept = append(kept, variable)
		}
	}
	return kept
}

// closeCampaign closes the open pull requests of the campaign.
func closeCampaign(ctx context.Context, p process, c *openedCampaign) (int, error) {
	client, _, err := forgeOf(p)
	if err != nil {
		return exitFailed, err
	}
	var drop func(context.Context, string, string) error
	if c.deleteBranches {
		drop = func(ctx context.Context, repository, branch string) error {
			return client.Setup(repository).DeleteBranch(ctx, branch)
		}
	}
	return exitOK, c.withLedger(func(l *campaign.Ledger, plan *campaign.Plan) error {
		ended, err := pulls.Close(ctx, client, l, c.Campaign, plan, drop)
		left := 0
		for _, e := range ended {
			if e.Left != "" {
				left++
				fmt.Fprintf(p.stdout, "%s#%d stays open: %s\n", progress.Printable(e.Target.Repository), e.Number, e.Left)
				continue
			}
			fmt.Fprintf(p.stdout, "%s#%d is closed\n", progress.Printable(e.Target.Repository), e.Number)
		}
		fmt.Fprintf(p.stdout, "%d pull requests closed, %d left open.\n", len(ended)-left, left)
		return err
	})
}

// mayApprove says who approves: in GitHub Actions the accounts that started the workflow, each of
// which needs a role of the job's trust.roles; elsewhere who may write the ledger.
func (c *openedCampaign) mayApprove(ctx context.Context, p process) (by string, err error) {
	env := settings.Environment(p.environ)
	if !env.InActions() {
		return c.who(p), nil
	}
	if c.by != "" {
		return "", errors.New("--by is not for GitHub Actions, where the one who started the workflow approves; leave it out")
	}
	client, _, err := forgeOf(p)
	if err != nil {
		return "", err
	}
	j, err := c.sampleJob(p)
	if err != nil {
		return "", err
	}
	event := intake.ReadEvent(ctx, intake.Surroundings{InActions: true, EventName: env.Get("GITHUB_EVENT_NAME"), EventPath: env.Get("GITHUB_EVENT_PATH"), Repository: env.Get("GITHUB_REPOSITORY"), HasToken: true})
	if err := event.Unusable(); err != nil {
		return "", err
	}
	if event.Event == nil || event.Sender.Login == "" {
		return "", errors.New("the event does not say who caused it; approve from a workflow that a person starts (workflow_dispatch), or from a machine with the ledger")
	}
	who := []forge.User{{Login: event.Sender.Login, ID: event.Sender.ID, Bot: event.Sender.Bot()}}
	if again := env.Get("GITHUB_TRIGGERING_ACTOR"); again != "" && !strings.EqualFold(again, event.Sender.Login) { // who ran the workflow once more
		who = append(who, forge.User{Login: again})
	}
	for _, each := range who {
		why, err := intake.Distrust(ctx, j, client.Repository(env.Get("GITHUB_REPOSITORY")), each)
		if err != nil {
			return "", err
		}
		if why != "" {
			return "", fmt.Errorf("%s; somebody who has such a role has to approve", why)
		}
	}
	return progress.Printable(who[len(who)-1].Login), nil
}
