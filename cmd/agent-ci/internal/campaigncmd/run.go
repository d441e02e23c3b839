package campaigncmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/cli"
	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/campaign/here"
	"github.com/agent-ci/agent-ci/runner/campaign/resolve"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/replay/history"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// spareTime is how long a run may take beyond its job's time limits before it is killed as hung.
const spareTime = time.Hour

// shutdownTime is how long a run has to exit after SIGTERM.
const shutdownTime = 2 * time.Minute

// runTargets runs the targets of a campaign on this machine, then shows the status. It returns an error if a
// target has failed, even in an earlier start.
func runTargets(ctx context.Context, c *openedCampaign) error {
	if err := c.checkClaimVariables(); err != nil {
		return err
	}
	status := cli.ExitOK
	err := c.withLedger(func(l *campaign.Ledger, plan *campaign.Plan) error {
		digest, err := campaign.JobDigest(c.Campaign)
		if err != nil {
			return err
		}
		if digest != plan.Template {
			return errors.New("the job of the campaign is not that of its plan; make a new plan with agent-ci campaign plan")
		}
		s, err := c.schedule(l, plan)
		if err != nil {
			return err
		}
		err = here.Run(ctx, s)
		if stop, is := errors.AsType[*outcome.Stop](err); is {
			status = stop.ExitCode()
			c.Note("The campaign was interrupted; its runs resume with the next agent-ci campaign run.")
		} else if err != nil {
			return err
		}
		now := c.status(l.State, plan)
		if status == cli.ExitOK && (now.HasFailure() || now.Stopped != nil) {
			status = cli.ExitFailed
		}
		return c.printStatus(now)
	})
	return cli.Exit(status, err)
}

// runOptions returns the options for a campaign's run on any host.
func (c *openedCampaign) runOptions() (o here.Options, err error) {
	program, err := os.Executable()
	if err != nil {
		return o, fmt.Errorf("find the program: %w", err)
	}
	publish, err := c.publishMode()
	if err != nil {
		return o, err
	}
	session := c.replay
	if session != "" {
		if session, err = filepath.Abs(session); err != nil {
			return o, fmt.Errorf("find the session: %w", err)
		}
	}
	j, err := SampleJob(c.Process, c.Campaign, c.file)
	if err != nil {
		return o, err
	}
	o = here.Options{
		Campaign: c.Campaign, Command: here.Command{Program: program, Args: []string{"--publish", publish}}, Session: session, Now: time.Now, Log: c.Stderr, TimeMargin: spareTime, ExitGrace: shutdownTime, Resumable: history.Resumable,
		Models: modelsOf(j, c.Environ), OnForge: publish == "github",
	}
	return o, nil
}

// publishMode returns the value of --publish for runs. Without the flag it is github if a token is set and
// the repositories are on GitHub, and else local.
func (c *openedCampaign) publishMode() (string, error) {
	onGitHub := c.Targets.Folder == ""
	switch {
	case c.publish == "github" && !onGitHub:
		return "", errors.New("the repositories of targets.folder are not on GitHub; leave --publish github out")
	case c.publish != "":
		return c.publish, nil
	case onGitHub && settings.Environment(c.Environ).Token() != "":
		return "github", nil
	}
	return "local", nil
}

// schedule returns the plan's runs on this machine.
func (c *openedCampaign) schedule(l *campaign.Ledger, plan *campaign.Plan) (s here.Schedule, err error) {
	options, err := c.runOptions()
	if err != nil {
		return s, err
	}
	ledger, err := filepath.Abs(c.ledger)
	if err != nil {
		return s, fmt.Errorf("find the ledger: %w", err)
	}
	s = here.Schedule{Options: options, Ledger: l, Plan: plan, Wait: c.wait}
	s.Template, s.Folder = plan.Template, campaign.Folder(ledger, c.Name)
	environ, err := c.withPaceFile(ledger)
	if err != nil {
		return s, err
	}
	s.Environ = withCampaignFolder(environ, ledger)
	if c.Targets.Folder != "" {
		repositories, err := filepath.Abs(string(c.repositories()))
		if err != nil {
			return s, fmt.Errorf("find the folder of the repositories: %w", err)
		}
		s.CheckOut = func(ctx context.Context, t campaign.Target, dir string) error {
			return resolve.Repositories(repositories).CheckOut(ctx, t, dir, c.Variable("PATH"))
		}
	}
	if !s.OnForge {
		return s, nil
	}
	client, _, err := publish.NewClient(environ, c.Process.Version, environ.Token())
	if err != nil {
		return s, err
	}
	s.Forge = client
	return s, nil
}

// withPaceFile returns the environment with the variable that names a pace file. All ledgers of the user have
// one file, because they share the API's rate limit.
func (c *openedCampaign) withPaceFile(ledger string) (settings.Environment, error) {
	environ := settings.Environment(c.Environ)
	if environ.Get(settings.PaceVariable) != "" {
		return environ, nil
	}
	folder := cmp.Or(record.CampaignsPath(c.Variable), ledger)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the pace file: %w", err)
	}
	return append(slices.Clone(environ), settings.PaceVariable+"="+filepath.Join(folder, "pace")), nil
}

// withCampaignFolder returns environ with the variable that hides folder, the place of other runs, from commands.
func withCampaignFolder(environ []string, folder string) []string {
	return append(slices.Clone(environ), settings.CampaignVariable+"="+folder)
}
