package history

import (
	"context"
	"errors"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/compare"
	"github.com/agent-ci/agent-ci/runner/task/config"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// RefuseExcessPermissions refuses a foreign record whose job permits more than the local job file, base commit
// and environment, because its author chose its settings. The recorded base commit counts only if origin
// has it. ws is on that commit. resumes means that the run will be resumed, which needs more.
func (h *Run) RefuseExcessPermissions(ctx context.Context, source *settings.Source, ws *workspace.Workspace, resumes bool) error {
	base := ws.Base()
	published, err := ws.Checkout().OnRemote(ctx, base.Branch, base.SHA)
	if err != nil {
		return workspace.CheckoutFailure(err)
	}
	needsPublished := resumes || source.Env.InActions() && source.JobFile != ""
	if needsPublished && !published {
		return foreignRecordError("its base commit %s is not part of the branch %.100q of origin, as this checkout knows it; fetch that branch, or start a new run", clip.SHA(base.SHA), base.Branch)
	}
	commit := settings.Commit{}
	if published {
		commit = ws.Commit()
	}
	set, err := source.LoadTemplate(ctx, commit)
	if err != nil {
		return err
	}
	if _, err := job.LoadRecorded(h.Started.Job); err != nil {
		return foreignRecordError("its job is none that agent-ci takes (%.300s); start a new run", firstProblem(err))
	}
	excess := compare.FirstExcess(&h.Job, &set.Job, resumes)
	if excess == nil && resumes {
		if excess, err = h.foreignBranchOrRepository(&set.Job, source.Env, ws); err != nil {
			return err
		}
	}
	if excess == nil {
		return nil
	}
	allowed := "the base commit and the settings here"
	if source.JobFile != "" {
		allowed += ", with the job " + source.JobFile + ","
	}
	return foreignRecordError("its %s (%.200s) goes beyond what %s allow; read the record first, then give the job that allows it with --job JOB.yml", excess.Key, excess.Value, allowed)
}

// RefuseExcessOnResume refuses to resume a foreign run that may do more than a new one here. options name the
// checkout.
func (h *Run) RefuseExcessOnResume(ctx context.Context, source *settings.Source, rec *record.Record, options workspace.Options) error {
	ws, err := workspace.Open(ctx, rec, options)
	if err != nil {
		return workspace.CheckoutFailure(err)
	}
	defer ws.Close()
	if err := ws.SetBase(ctx, gitops.BaseSpec{Branch: h.Workspace.Base, SHA: h.Workspace.BaseSHA}); err != nil {
		return workspace.CheckoutFailure(err)
	}
	const resumes = true
	return h.RefuseExcessPermissions(ctx, source, ws, resumes)
}

// foreignBranchOrRepository returns the run's branch or repository if the local job does not permit it, or nil.
func (h *Run) foreignBranchOrRepository(j *job.Job, env settings.Environment, ws *workspace.Workspace) (*compare.Excess, error) {
	if branch := h.Workspace.Branch; branch != j.PullRequest.Branch && !intake.IsRunBranch(branch) {
		return &compare.Excess{Key: "pull_request.branch", Value: branch}, nil
	}
	around := intake.ReadSurroundings(env)
	name, err := intake.RepositorySources{Job: j, Event: intake.Event{Surroundings: around}, Server: around.Server, Origin: ws.Checkout().Origin()}.Repository()
	if err != nil {
		return nil, err
	}
	recorded := h.Workspace.Repository // "" if the run knew no repository
	if recorded == "" || strings.EqualFold(name, recorded) {
		return nil, nil
	}
	return &compare.Excess{Key: "repository.name", Value: h.Workspace.Repository}, nil
}

// firstProblem returns the first problem of a configuration as text, or another error's text.
func firstProblem(err error) string {
	if problems, areProblems := errors.AsType[config.Problems](err); areProblems {
		return problems[0].String()
	}
	return err.Error()
}

// foreignRecordError returns the error for a record that this machine did not write.
func foreignRecordError(format string, args ...any) error {
	return outcome.Stopf(outcome.InvalidInput, "foreign_record", "This machine did not record the run: "+format+".", args...)
}
