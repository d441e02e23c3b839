package verify

import (
	"context"
	"fmt"
	"time"

	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// The commands of the job before the agent, besides setup and checks.
const (
	appliesIf = "applies_if"
	recipe    = "recipe"
)

// appliesTime limits the time of applies_if.
const appliesTime = 5 * time.Minute

// notApplicable is the exit status of applies_if if the job does not apply.
const notApplicable = 1

// RunAppliesIf runs applies_if on a fresh tree of the base. It returns the outcome Skipped if the job does not
// apply.
func (c Checks) RunAppliesIf(ctx context.Context) error {
	if c.Job.AppliesIf == "" {
		return nil
	}
	if err := c.Workspace.TakeSnapshot(ctx); err != nil {
		return err
	}
	jobWithCheck := *c.Job
	jobWithCheck.Verify = []job.VerifyCheck{{Name: appliesIf, Run: c.Job.AppliesIf, Timeout: job.Duration(appliesTime)}}
	c.Job = &jobWithCheck
	base := c.Workspace.Base()
	s := c.newSuite(0, base, base.Tree)
	s.kind = appliesIf
	script := c.scriptFor(s, 0, record.LogName(appliesIf, 1, ""))
	ran, err := c.runCheck(ctx, s, script, 0)
	if err == nil {
		err = c.recordCommand(appliesIf, script, ran)
	}
	switch {
	case err != nil:
		return err
	case ran.Color() == "green":
		return nil
	case ran.Color() == "red" && ran.ExitCode == notApplicable:
		return outcome.Stopf(outcome.Skipped, "not_applicable", "The job does not apply here: applies_if exited with %d.", notApplicable)
	}
	return outcome.Stopf(outcome.InvalidInput, appliesIf,
		"applies_if %s; it must exit with 0 (the job applies) or 1 (it does not); see %s.", describeFailure(ran), c.Record.DescribeLogPlace(script.Log))
}

// RunRecipe runs the recipe in the agent's work tree. Its changes become part of the run's change.
func (c Checks) RunRecipe(ctx context.Context) error {
	step := c.Job.Recipe
	script := confine.Script{
		Name: recipe, Run: step.Run, Dir: c.Workspace.WorkDir(c.Job.Repository.Path), Timeout: time.Duration(step.Timeout), Log: record.LogName(recipe, 1, ""),
		Place: confine.Place{Scratch: recipe, Changes: confine.AgentScratch, Services: true, CommandKind: job.CommandsSetup},
	}
	ran, err := c.runCommand(ctx, record.PhaseAgent, recipe, recipe, script)
	if err != nil || ran.Color() == "green" {
		return err
	}
	return outcome.Stopf(outcome.InvalidInput, "recipe_failed", "The recipe %s (%s); correct recipe.run, or raise recipe.timeout.", describeFailure(ran), c.Record.DescribeLogPlace(script.Log))
}

// DescribeRecipe describes the recipe to the agent.
func (c Checks) DescribeRecipe() string {
	return fmt.Sprintf("A command of the job, the recipe, has run in the checkout before you: its change is there, uncommitted, and is part of yours. It was:\n\n%s", c.Job.Recipe.Run)
}
