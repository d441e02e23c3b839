package verify

import (
	"context"
	"fmt"
	"time"

	"github.com/agent-ci/agent-ci/runner/confine"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// SetUp runs the job's setup commands in the checkout, before the baseline and
// the first turn. What they change of tracked files would be taken for the
// agent's work, so that it ends the run.
func (c Checks) SetUp(ctx context.Context) error {
	if len(c.Job.Setup) == 0 {
		return nil
	}
	if err := c.Workspace.TakeSnapshot(ctx); err != nil { // what a setup that fails leaves can be taken back
		return err
	}
	for i, step := range c.Job.Setup {
		if err := c.setUpStep(ctx, i, step); err != nil {
			return err
		}
	}
	if err := c.Workspace.UnchangedBy(ctx, "setup"); err != nil {
		return err
	}
	return c.Sandboxes.HideMore(ctx)
}

func (c Checks) setUpStep(ctx context.Context, i int, step job.SetupStep) error {
	name := step.Name
	if name == "" {
		name = fmt.Sprintf("setup %d", i+1)
	}
	script := confine.Script{
		Name: name, Run: step.Run, Dir: c.Workspace.WorkDir(c.Job.Repository.Path), Timeout: time.Duration(step.Timeout), Log: record.LogName("setup", i+1, name),
		Place: confine.Place{Scratch: confine.SetupScratch, Network: step.Network, Key: fmt.Sprintf("setup[%d].network", i)},
	}
	ran, err := c.Sandboxes.RunScript(ctx, script)
	if err != nil {
		return err
	}
	event := transcript.Setup{Name: name, Run: step.Run, ExitCode: ran.ExitCode, Seconds: ran.Seconds, Log: script.Log}
	if err := c.Record.Append(transcript.TypeSetup, event); err != nil {
		return err
	}
	if ran.Color() != "green" {
		return outcome.Stopf(outcome.InvalidInput, "setup_failed",
			"The setup command %q ended as %s; see %s.", name, ran.Color(), c.Record.Join(script.Log))
	}
	return nil
}
