package campaigncmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/cli"
	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/runcmd"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github"
	"github.com/agent-ci/agent-ci/runner/agent/provider"
	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/campaign/pulls"
	"github.com/agent-ci/agent-ci/runner/campaign/resolve"
	"github.com/agent-ci/agent-ci/runner/campaign/spec"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/publish/progress"
	"github.com/agent-ci/agent-ci/runner/task/config"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// modelsOf returns the models that a job's runs may use, with their prices and sizes.
func modelsOf(j *job.Job, environ []string) (models []campaign.Model) {
	for _, m := range provider.Models(j, settings.Environment(environ)) {
		models = append(models, campaign.Model{Name: m.Name, Price: m.Profile.Price, Window: m.Profile.ContextWindow, Output: m.Profile.OutputLimit})
	}
	return models
}

// newForgeClient returns a client for the forge of the campaign's repositories, and the root of its web pages.
func (c *openedCampaign) newForgeClient() (*github.Client, string, error) {
	env := settings.Environment(c.Environ)
	if env.Token() == "" {
		return nil, "", errors.New("there is no GitHub token: set GITHUB_TOKEN to one that may read the targets, and push to them")
	}
	return publish.NewClient(env, c.Process.Version, env.Token())
}

// targetSource returns the local folder or the forge of the repositories. server is the root of the forge's pages.
func (c *openedCampaign) targetSource() (from resolve.Forge, server string, err error) {
	if repositories := c.repositories(); repositories != "" {
		return repositories, "", nil
	}
	return c.newForgeClient()
}

// repositories returns the folder of targets.folder, or "" for the forge.
func (c *openedCampaign) repositories() resolve.Repositories {
	if c.Targets.Folder == "" {
		return ""
	}
	return resolve.Repositories(filepath.Join(filepath.Dir(c.file), c.Targets.Folder))
}

// planCampaign makes a plan and shows it. With --format matrix or kubernetes it writes a wave instead.
func planCampaign(ctx context.Context, c *openedCampaign) (err error) {
	ledger, err := campaign.Open(c.ledger, time.Now)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()
	if host := handoutHosts[c.format]; host != "" {
		return c.handOut(ctx, ledger, host)
	}
	plan, err := c.makePlan(ctx, ledger)
	if err != nil {
		return showProblems(c.Process, c.file, err)
	}
	return c.printStatus(c.status(ledger.State, plan))
}

// makePlan records a new plan in the ledger, and the current states of pull requests on GitHub.
func (c *openedCampaign) makePlan(ctx context.Context, ledger *campaign.Ledger) (*campaign.Plan, error) {
	plan, err := c.resolvePlan(ctx)
	if err != nil {
		return nil, err
	}
	if obstacle := plan.WhyUnclaimable(c.Budget); obstacle != "" {
		return nil, fmt.Errorf("the campaign has a budget in dollars, and no run of it can be claimed: %s", obstacle)
	}
	if ledger.Of(c.Name).Plan != "" {
		previous, err := campaign.ReadPlan(c.ledger, c.Name, ledger.State)
		if err != nil {
			c.Note("The plan before this one is not looked at: %v.", err)
		}
		plan.CarryOver(previous, ledger.State)
	}
	if err := ledger.Plan(plan); err != nil {
		return nil, err
	}
	if c.Targets.Folder != "" { // local repositories have no pull requests
		return plan, nil
	}
	return plan, c.refreshPulls(ctx, ledger, plan)
}

// resolvePlan makes a plan of the targets in their current state. It records nothing.
func (c *openedCampaign) resolvePlan(ctx context.Context) (*campaign.Plan, error) {
	if err := c.checkClaimVariables(); err != nil {
		return nil, err
	}
	from, server, err := c.targetSource()
	if err != nil {
		return nil, err
	}
	template, err := campaign.JobDigest(c.Campaign)
	if err != nil {
		return nil, err
	}
	j, err := SampleJob(c.Process, c.Campaign, c.file)
	if err != nil {
		return nil, err
	}
	plan := &campaign.Plan{Version: campaign.PlanVersion, Campaign: c.Name, Template: template, Made: time.Now().UTC().Truncate(time.Second), Limits: campaign.Claim{USD: j.Limits.CostUSD, Tokens: j.Limits.Tokens}}
	plan.Claim, plan.Unpriced = campaign.ClaimOf(j, modelsOf(j, c.Environ))
	plan.Targets, err = resolve.Targets(ctx, resolve.Options{
		Campaign: c.Campaign, File: c.file, Folder: filepath.Dir(c.file), Forge: from, Server: server, FeedbackOnly: j.Publish.IsFeedback(),
	})
	return plan, err
}

// SampleJob returns a campaign's job with sample values in its placeholders. file is the campaign file.
func SampleJob(p cli.Process, c *spec.Campaign, file string) (*job.Job, error) {
	raw, err := c.Job.Sample()
	if err != nil {
		return nil, err
	}
	variables, _ := job.Format().Environment(p.Environ, runcmd.ReservedVariables())
	return job.LoadTemplate(config.Layer{Name: cmp.Or(c.JobFile, file), Kind: config.FileLayer, Data: raw}, variables)
}

// refreshPulls records the current states of the campaign's pull requests.
func (c *openedCampaign) refreshPulls(ctx context.Context, ledger *campaign.Ledger, plan *campaign.Plan) error {
	client, _, err := c.newForgeClient()
	if err != nil {
		return err
	}
	return pulls.Refresh(ctx, client, ledger, c.Campaign, plan)
}

// closeCampaign closes the campaign's pull requests and deletes their branches. It prints why some stay open.
// That is no failure, unless agent-ci tried to close them.
func closeCampaign(ctx context.Context, c *openedCampaign) error {
	client, _, err := c.newForgeClient()
	if err != nil {
		return err
	}
	deleteBranch := func(ctx context.Context, repository, branch string) error {
		return client.Setup(repository).DeleteBranch(ctx, branch)
	}
	status := cli.ExitOK
	err = c.withLedger(func(l *campaign.Ledger, plan *campaign.Plan) error {
		pullRequests, err := pulls.Close(ctx, client, l, c.Campaign, plan, deleteBranch)
		leftOpen := 0
		for _, pull := range pullRequests {
			name := fmt.Sprintf("%s#%d", pull.Target.Repository, pull.Number)
			if pull.State == "open" {
				leftOpen++
			}
			switch {
			case pull.Failure != nil:
				status = c.Report("campaign close", pull.Failure)
			case pull.KeptReason != "":
				c.Print("%s stays open: %s", name, pull.KeptReason)
			default:
				c.Print("%s is closed", name)
			}
		}
		c.Print("%d pull requests closed, %d left open.", len(pullRequests)-leftOpen, leftOpen)
		return err
	})
	return cli.Exit(status, err)
}

// approver returns the account that approves. In GitHub Actions, each account that started the workflow
// needs a role in the job's trust.roles. Elsewhere anyone who can write the ledger may approve.
func (c *openedCampaign) approver(ctx context.Context) (by string, err error) {
	env := settings.Environment(c.Environ)
	if !env.InActions() {
		return c.currentUser(), nil
	}
	client, _, err := c.newForgeClient()
	if err != nil {
		return "", err
	}
	j, err := SampleJob(c.Process, c.Campaign, c.file)
	if err != nil {
		return "", err
	}
	event := intake.ReadEvent(ctx, intake.ReadSurroundings(env))
	if err := event.UnusableError(); err != nil {
		return "", err
	}
	if event.Event == nil || event.Sender.Login == "" {
		return "", errors.New("the event does not say who caused it; approve from a workflow that a person starts (workflow_dispatch), or from a machine with the ledger")
	}
	starters := []forge.User{{Login: event.Sender.Login, ID: event.Sender.ID, Bot: event.Sender.IsBot()}}
	if rerunner := env.Get("GITHUB_TRIGGERING_ACTOR"); rerunner != "" && !strings.EqualFold(rerunner, event.Sender.Login) {
		starters = append(starters, forge.User{Login: rerunner})
	}
	source := intake.Source{Job: j, Permissions: intake.PermissionCache{}}
	for _, account := range starters {
		distrust, err := source.DistrustReason(ctx, client.Repository(env.Get("GITHUB_REPOSITORY")), account)
		if err != nil {
			return "", err
		}
		if distrust != "" {
			return "", fmt.Errorf("%s; somebody who has such a role has to approve", distrust)
		}
	}
	lastStarter := starters[len(starters)-1]
	return progress.Printable(lastStarter.Login), nil
}
