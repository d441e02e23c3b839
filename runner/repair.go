package runner

import (
	"context"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/publish/repair"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// repairing is what is red on a run's pull request, and the attempt to mend it.
type repairing struct {
	*repair.Case
	thread *repair.Thread // nil before it was decided that there is something to mend
	plan   *repair.Plan
}

// event is what started the run: a command that names a pull request, else what the
// surroundings tell of.
func (r *runner) event(ctx context.Context, repairs string) (intake.Event, error) {
	if repairs == "" {
		return intake.ReadEvent(ctx, surroundings(r.env)), nil
	}
	pull, err := job.ParseIssue(repairs)
	if err != nil || pull.Repository == "" {
		return intake.Event{}, outcome.Stopf(outcome.InvalidInput, "pull_request", "%q names no pull request; give it as OWNER/REPO#N.", repairs)
	}
	return intake.Repairs(pull.Number, pull.Repository, r.env.Token() != ""), nil
}

// lookAtChecks finds out what is red on the pull request of a request for a repair. It
// changes nothing on the forge.
func lookAtChecks(ctx context.Context, a assignment, pull *forge.PullRequest) (*repairing, error) {
	if a.source.Request == nil || !a.source.Request.Repair {
		return a.red, nil
	}
	red := a.red
	if red == nil {
		found, err := repair.Look(ctx, a.project.forge.Repository(a.source.Event.Repository), pull, a.source.Head())
		if err != nil {
			return nil, err
		}
		red = &repairing{Case: found}
	}
	a.source.Failing = red.Parts()
	a.source.Repair = &intake.Repair{Head: red.Head}
	return red, nil
}

// decideRepair ends a run that has nothing to mend, or may not, and says so on the pull
// request. What it may cost is settled.
func (r *runner) decideRepair(ctx context.Context, a *assignment, ws *workspace.Workspace) (*assignment, error) {
	if a.red == nil {
		return a, nil
	}
	red := &repairing{Case: a.red.Case, thread: &repair.Thread{
		Server: a.project.forge, Repository: a.project.forge.Repository(a.source.Event.Repository), Number: a.red.Pull.Number,
		Run: r.rec.ID, Link: r.env.RunLink(), Redact: r.rec.Redact,
	}}
	var err error
	if red.plan, err = red.thread.Decide(ctx, red.Case, a.source.Head(), a.job().Repair); err != nil {
		return a, err
	}
	left := red.plan.Left
	if !a.model.Profile.Price.Known() {
		left = 0 // what it costs is not known either
	}
	next := r.by(*a, a.settings.ForRepair(left), ws)
	next.red, next.task.Repair = red, &red.plan.Attempt
	r.end.assignment = &next
	return &next, nil
}

// beginRepair counts the attempt.
func (r *runner) beginRepair(ctx context.Context, a *assignment) error {
	if a.red == nil {
		return nil
	}
	if err := a.red.thread.Attempt(ctx, a.red.plan, a.job().Repair.Attempts); err != nil {
		return err
	}
	r.end.last = append(r.end.last, func(ctx context.Context, stop *outcome.Stop) { r.concludeRepair(ctx, a, stop) })
	return nil
}

// concludeRepair says on the pull request how the attempt ended.
func (r *runner) concludeRepair(ctx context.Context, a *assignment, stop *outcome.Stop) {
	_, cost := r.end.agents.spent()
	attempt := a.red.plan.Attempt
	end := repair.Ended{Outcome: stop.Outcome, Reason: stop.Reason, Message: r.withoutPaths(stop.Message), Spent: attempt.SpentWith(cost), Last: attempt.Attempt >= a.job().Repair.Attempts}
	if p := r.end.publication(); p.Remote != "" {
		end.Commit = p.Commit
	}
	if err := a.red.thread.Conclude(ctx, a.red.Case, end); err != nil {
		r.rec.Warn("comment_not_written", "The result of the repair could not be reported on the pull request: %v", err)
	}
}

// withoutPaths is a message for people who are not at this machine.
func (r *runner) withoutPaths(message string) string {
	here := r.rec.Directory.Path()
	return strings.NewReplacer(here+"/", "", here, "the run directory").Replace(message)
}

// repaired is what the pull request held that the run mends; nil for another task.
func (rd *ready) repaired() *gitops.ChangeSet {
	if rd.task.Repair == nil {
		return nil
	}
	return rd.laid.change
}
