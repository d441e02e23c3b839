package runner

import (
	"context"
	"errors"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/replay/history"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// recordedHere says whether this machine wrote the record in a run directory. Any other one is a
// stranger's, wherever it came from: who wrote it chose its settings and its base commit.
func (r *runner) recordedHere(dir *record.Directory) bool {
	return dir.RecordedHere(record.NotesPath(r.env.Get))
}

// holdForeign refuses a stranger's record whose job allows more than the job file given here, the
// base commit and the environment do. ws is on the recorded base, which counts once origin has it.
func (r *runner) holdForeign(ctx context.Context, h *history.Run, ws *workspace.Workspace, publish string, resumes bool) error {
	base := ws.Base()
	published, err := ws.Checkout().OnRemote(ctx, base.Branch, base.SHA)
	if err != nil {
		return workspace.CheckoutFailure(err)
	}
	if !published && (resumes || r.env.InActions() && r.source.JobFile != "") {
		return foreign("its base commit %s is not part of the branch %.100q of origin, as this checkout knows it; fetch that branch, or start a new run", gitops.Short(base.SHA), base.Branch)
	}
	commit := settings.Commit{}
	if published {
		commit = ws.Commit()
	}
	set, err := r.source.LoadTemplate(ctx, commit)
	if err != nil {
		return err
	}
	if _, err := job.LoadRecorded(h.Started.Job); err != nil {
		return foreign("its job is none that agent-ci takes (%.300s); start a new run", firstProblem(err))
	}
	if over := h.Job.Beyond(&set.Job, resumes); over != nil {
		return r.beyond(*over)
	}
	if !resumes {
		return nil
	}
	if branch := h.Workspace.Branch; branch != set.Job.PullRequest.Branch && !intake.OfRun(branch) {
		return r.beyond(job.Excess{Key: "pull_request.branch", Value: branch})
	}
	project, err := r.findProject(intake.Naming{Job: &set.Job, Event: r.around(), Origin: ws.Checkout().Origin()}, publish)
	if err == nil && h.Workspace.Repository != "" && !strings.EqualFold(project.Name(), h.Workspace.Repository) {
		err = r.beyond(job.Excess{Key: "repository.name", Value: h.Workspace.Repository})
	}
	return err
}

// foreignState finds out whether the run directory is a stranger's, and refuses one with a state
// folder: what that says of checkouts would be put into the one here.
func (r *runner) foreignState() (bool, error) {
	if r.recordedHere(r.rec.Directory) {
		return false, nil
	}
	if r.rec.Has(record.StateFolder) {
		return false, foreign("the folder %s in its run directory is not trusted; remove it to resume with the change and the patches that its transcript tells of", record.StateFolder)
	}
	return true, nil
}

// holdResumed is holdForeign for a run that goes on, in the checkout that was named, else the one
// here.
func (r *runner) holdResumed(ctx context.Context, a *assignment) error {
	if !a.past.Foreign {
		return nil
	}
	ws, err := workspace.Open(ctx, r.rec, r.at(a.dir))
	if err != nil {
		return workspace.CheckoutFailure(err)
	}
	defer ws.Close()
	if err := ws.SetBase(ctx, gitops.BaseSpec{Branch: a.past.Workspace.Base, SHA: a.past.Workspace.BaseSHA}); err != nil {
		return workspace.CheckoutFailure(err)
	}
	return r.holdForeign(ctx, a.past, ws, a.publish, true)
}

func (r *runner) beyond(over job.Excess) error {
	here := "the base commit and the settings here"
	if r.source.JobFile != "" {
		here += ", with the job " + r.source.JobFile + ","
	}
	return foreign("its %s (%.200s) goes beyond what %s allow; read the record first, then give the job that allows it with --job JOB.yml", over.Key, over.Value, here)
}

// firstProblem is the first mistake of a job.
func firstProblem(err error) string {
	if problems, is := errors.AsType[job.Problems](err); is {
		return problems[0].String()
	}
	return err.Error()
}

func foreign(format string, args ...any) error {
	return outcome.Stopf(outcome.InvalidInput, "foreign_record", "This machine did not record the run: "+format+".", args...)
}
