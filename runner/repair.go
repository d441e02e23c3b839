package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/intake"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/judge"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/repair"
)

// repairing is an attempt to mend what is red on a run's pull request; zero for none.
type repairing struct {
	thread *repair.Thread // nil before it was decided that there is something to mend
	plan   *repair.Plan
	begun  bool // the attempt counts
}

// event is what started the run: a command that names a pull request, else what the
// surroundings tell of.
func (in *invocation) event(ctx context.Context) (intake.Event, error) {
	if in.repairs == "" {
		return intake.ReadEvent(ctx, surroundings(in.env)), nil
	}
	pull, err := job.ParseIssue(in.repairs)
	if err != nil || pull.Repository == "" {
		return intake.Event{}, outcome.Stopf(outcome.InvalidInput, "pull_request", "%q names no pull request; give it as OWNER/REPO#N.", in.repairs)
	}
	return intake.Repairs(pull.Number, pull.Repository, in.env.Token() != ""), nil
}

// lookAtChecks finds out what is red on the pull request of a request for a repair. It
// changes nothing on the forge.
func (in *invocation) lookAtChecks(ctx context.Context, a assignment, pull *forge.PullRequest) (assignment, error) {
	if a.source.Request == nil || !a.source.Request.Repair {
		return a, nil
	}
	if a.red == nil {
		var err error
		if a.red, err = repair.Look(ctx, a.project.forge.Repository(a.source.Event.Repository), pull, a.source.Head()); err != nil {
			return a, err
		}
	}
	a.source.Failing = a.red.Parts()
	a.source.Repair = &intake.Repair{Head: a.red.Head}
	return a, nil
}

// decideRepair ends a run that has nothing to mend, or may not, and says so on the pull
// request. What it may cost is settled.
func (in *invocation) decideRepair(ctx context.Context, so *reached) (err error) {
	if so.red == nil {
		return nil
	}
	so.repair.thread = &repair.Thread{
		Server: so.project.forge, Repository: so.project.forge.Repository(so.source.Event.Repository), Number: so.red.Pull.Number,
		Run: in.rec.ID, Link: in.env.RunLink(), Redact: in.rec.Redact,
	}
	if so.repair.plan, err = so.repair.thread.Decide(ctx, so.red, so.source.Head(), so.job().Repair); err != nil {
		return err
	}
	so.task.Repair = &so.repair.plan.Attempt
	left := so.repair.plan.Left
	if !so.model.Profile.Price.Known() {
		left = 0 // what it costs is not known either
	}
	so.assignment = in.by(so.assignment, so.settings.ForRepair(left), so.workspace)
	return nil
}

// beginRepair counts the attempt.
func (in *invocation) beginRepair(ctx context.Context, so *reached) error {
	if so.repair.plan == nil {
		return nil
	}
	err := so.repair.thread.Attempt(ctx, so.repair.plan, so.job().Repair.Attempts)
	so.repair.begun = err == nil
	return err
}

// concludeRepair says on the pull request how the attempt ended.
func (in *invocation) concludeRepair(ctx context.Context, so *reached, stop *outcome.Stop) {
	if !so.repair.begun {
		return
	}
	_, cost := so.spent()
	attempt := so.repair.plan.Attempt
	end := repair.Ended{Outcome: stop.Outcome, Reason: stop.Reason, Message: in.withoutPaths(stop.Message), Spent: attempt.SpentWith(cost), Last: attempt.Attempt >= so.job().Repair.Attempts}
	if p := so.published(); p.Remote != "" {
		end.Commit = p.Commit
	}
	if err := so.repair.thread.Conclude(ctx, so.red, end); err != nil {
		in.rec.Warn("comment_not_written", "How the repair ended could not be said on the pull request: %v", err)
	}
}

// withoutPaths is a message for people who are not at this machine.
func (in *invocation) withoutPaths(message string) string {
	here := in.rec.Directory.Path()
	return strings.NewReplacer(here+"/", "", here, "the run directory").Replace(message)
}

// repaired is what the pull request held that the run mends; nil for another task.
func (so *reached) repaired() *gitops.ChangeSet {
	if so.task.Repair == nil {
		return nil
	}
	return so.earlier
}

// keepsTests refuses a repair under which tests of the base are gone or fail. Those in a
// file that the pull request had changed, and that the repair left as it was, are that
// change's.
func (so *reached) keepsTests() error {
	before := so.repaired()
	if before == nil || so.change.Empty() {
		return nil
	}
	mended := judge.Differ(before, so.change)
	earlier := func(file string) bool {
		return !mended[file] && slices.ContainsFunc(before.Files, func(f gitops.File) bool { return f.Path == file })
	}
	var broken []string
	for _, old := range so.table.OldTests() {
		if !earlier(old.File) {
			broken = append(broken, fmt.Sprintf("%q (%s)", old.Name, old.State()))
		}
	}
	if !so.table.Passed {
		return nil
	}
	if why := so.table.OldTestsUnknown(); why != "" {
		broken = append(broken, "more is not known, since "+why)
	}
	if len(broken) == 0 {
		return nil
	}
	const shown = 10
	if more := len(broken) - shown; more > 0 {
		broken = append(broken[:shown], fmt.Sprintf("%d more", more))
	}
	return outcome.Stopf(outcome.PolicyViolation, "repair_refused",
		"Tests of the base are not what they were under this repair, which is not pushed: %s.", strings.Join(broken, ", "))
}
