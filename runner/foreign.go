package runner

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/intake"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/settings"
	"github.com/agent-ci/agent-ci/runner/workspace"
)

// recordedHere says whether this machine wrote the record in a run directory. Any other one is a
// stranger's, wherever it came from: who wrote it chose its settings and its base commit.
func (in *invocation) recordedHere(dir *record.Directory) bool {
	return dir.RecordedHere(record.NotesPath(in.env.Get))
}

// holdForeign refuses a stranger's record whose job allows more than the job file given here, the
// base commit and the environment do. ws is on the recorded base, which counts once origin has it.
func (in *invocation) holdForeign(ctx context.Context, h *history, ws *workspace.Workspace, goesOn bool) error {
	base := ws.Base()
	published, err := ws.Checkout().OnRemote(ctx, base.Branch, base.SHA)
	if err != nil {
		return workspace.CheckoutFailure(err)
	}
	if !published && (goesOn || in.env.InActions() && in.source.JobFile != "") {
		return foreign("its base commit %s is not part of the branch %.100q of origin, as this checkout knows it; fetch that branch, or start a new run", gitops.Short(base.SHA), base.Branch)
	}
	commit := settings.Commit{}
	if published {
		commit = ws.Commit()
	}
	set, err := in.source.LoadTemplate(ctx, commit)
	if err != nil {
		return err
	}
	if _, err := job.LoadRecorded(h.Started.Job); err != nil {
		return foreign("its job is none that agent-ci takes (%.300s); start a new run", firstProblem(err))
	}
	if over := h.job.Beyond(&set.Job, goesOn); over != nil {
		return in.beyond(*over)
	}
	if !goesOn {
		return nil
	}
	if branch := h.Workspace.Branch; branch != set.Job.PullRequest.Branch && !intake.OfRun(branch) {
		return in.beyond(job.Excess{Key: "pull_request.branch", Value: branch})
	}
	project, err := in.findProject(in.naming(&set.Job, in.around(), ws))
	if err == nil && h.Workspace.Repository != "" && !strings.EqualFold(project.name(), h.Workspace.Repository) {
		err = in.beyond(job.Excess{Key: "repository.name", Value: h.Workspace.Repository})
	}
	return err
}

// strangersState finds out whether the run directory is a stranger's, and refuses one with a state
// folder: what that says of checkouts would be put into the one here.
func (in *invocation) strangersState() error {
	if in.recordedHere(in.rec.Directory) {
		return nil
	}
	if in.rec.Has(record.StateFolder) {
		return foreign("the folder %s in its run directory is not trusted; remove it to resume with the change and the patches that its transcript tells of", record.StateFolder)
	}
	in.strangers = true
	return nil
}

// leaveStranger removes the state folder that a stranger's record did not have, so that it can be
// tried again.
func (in *invocation) leaveStranger() {
	if in.strangers {
		in.rec.Remove(record.StateFolder)
	}
}

// holdResumed is holdForeign for a run that goes on, in the checkout that was named, else the one
// here: where a stranger's run worked says nothing of this machine.
func (in *invocation) holdResumed(ctx context.Context, h *history) error {
	if !in.strangers {
		return nil
	}
	in.dir = cmp.Or(in.dir, ".")
	ws, err := workspace.Open(ctx, in.rec, workspace.Options{Dir: in.dir, Path: in.env.Get("PATH"), Forge: in.server(), OpenFilter: in.earlyFilters()})
	if err != nil {
		return workspace.CheckoutFailure(err)
	}
	defer ws.Close()
	if err := ws.UseBase(gitops.BaseSpec{Branch: h.Workspace.Base, SHA: h.Workspace.BaseSHA}); err != nil {
		return workspace.CheckoutFailure(err)
	}
	return in.holdForeign(ctx, h, ws, true)
}

func (in *invocation) beyond(over job.Excess) error {
	here := "the base commit and the settings here"
	if in.source.JobFile != "" {
		here += ", with the job " + in.source.JobFile + ","
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
