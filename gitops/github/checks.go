package github

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"

	gh "github.com/google/go-github/v60/github"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

const (
	readChecks   = "checks: read and statuses: read"
	writeActions = "actions: write"
)

// Checks reads the check runs of a commit, then its statuses, up to forge.MaxChecks together.
func (r *repository) Checks(ctx context.Context, sha string) ([]forge.Check, error) {
	call := apiCall{action: fmt.Sprintf("read the checks of the commit %.12s in %s", sha, r.fullName), permission: readChecks, objects: []string{sha}}
	runs, err := listUpTo(ctx, forge.MaxChecks, r, call, r.checkFromRun, func(page gh.ListOptions) ([]*gh.CheckRun, *gh.Response, error) {
		found, resp, err := r.rest.Checks.ListCheckRunsForRef(ctx, r.owner, r.name, sha, &gh.ListCheckRunsOptions{Filter: gh.String("latest"), ListOptions: page})
		if err != nil || found == nil {
			return nil, resp, err
		}
		return found.CheckRuns, resp, nil
	})
	if err != nil {
		return nil, err
	}
	statuses, err := listUpTo(ctx, forge.MaxChecks-len(runs), r, call, checkFromStatus, func(page gh.ListOptions) ([]*gh.RepoStatus, *gh.Response, error) {
		found, resp, err := r.rest.Repositories.GetCombinedStatus(ctx, r.owner, r.name, sha, &page)
		if err != nil || found == nil {
			return nil, resp, err
		}
		return found.Statuses, resp, nil
	})
	return append(runs, statuses...), err
}

// jobPage matches the path of a job's web page. The groups are the repository and the id of the
// workflow run.
var jobPage = lazyregexp.New(`^/([^/]+/[^/]+)/actions/runs/([0-9]{1,18})/`)

// checkFromRun converts a check run. It takes the id of the workflow run from the URL of the job's
// page, because no field has it. A workflow can create a check run that looks like a job's. So the
// caller must verify the commit of the run.
func (r *repository) checkFromRun(run *gh.CheckRun) forge.Check {
	c := forge.Check{
		Name: run.GetName(), Status: run.GetStatus(), Conclusion: run.GetConclusion(), App: run.GetApp().GetSlug(), URL: run.GetDetailsURL(),
		Summary: joinSummary(run.GetOutput().GetTitle(), run.GetOutput().GetSummary()),
	}
	page, err := url.Parse(run.GetDetailsURL())
	if err != nil || c.App != forge.GitHubActions {
		return c
	}
	if m := jobPage().FindStringSubmatch(page.Path); m != nil && strings.EqualFold(m[1], r.fullName) {
		c.RunID, _ = strconv.ParseInt(m[2], 10, 64) // no error: the pattern allows up to 18 digits
		c.JobID = run.GetID()                       // a job has the same id as its check run
	}
	return c
}

// conclusions maps the states of a commit status to conclusions of a check run. Other states are
// not final.
var conclusions = map[string]string{"success": "success", "failure": "failure", "error": "failure"}

// checkFromStatus converts a commit status. A status that is not final becomes a check in progress.
func checkFromStatus(status *gh.RepoStatus) forge.Check {
	c := forge.Check{
		Name: status.GetContext(), Status: "in_progress", URL: status.GetTargetURL(), Summary: joinSummary(status.GetDescription()),
	}
	if conclusion, settled := conclusions[status.GetState()]; settled {
		c.Status, c.Conclusion = "completed", conclusion
	}
	return c
}

// joinSummary joins the texts that are not empty, and cuts the result to forge.MaxSummary bytes.
func joinSummary(texts ...string) string {
	all := strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "\n\n")
	return strings.ToValidUTF8(clip.Start(all, forge.MaxSummary), "")
}

// WorkflowRun reads a workflow run.
func (r *repository) WorkflowRun(ctx context.Context, id int64) (*forge.WorkflowRun, error) {
	call := apiCall{action: fmt.Sprintf("read the run %d of a workflow of %s", id, r.fullName), permission: readActions}
	var run struct {
		gh.WorkflowRun
		Path string // not in go-github v60
	}
	if err := r.getJSON(ctx, call, fmt.Sprintf("actions/runs/%d", id), &run); err != nil {
		return nil, err
	}
	return &forge.WorkflowRun{ID: run.GetID(), Path: run.Path, Attempt: run.GetRunAttempt(), HeadSHA: run.GetHeadSHA()}, nil
}

// WorkflowJobs reads the jobs of the newest attempt.
func (r *repository) WorkflowJobs(ctx context.Context, runID int64) ([]forge.Job, error) {
	call := apiCall{action: fmt.Sprintf("read the jobs of the run %d in %s", runID, r.fullName), permission: readActions}
	return listUpTo(ctx, forge.MaxChecks, r, call, jobFrom, func(page gh.ListOptions) ([]*gh.WorkflowJob, *gh.Response, error) {
		found, resp, err := r.rest.Actions.ListWorkflowJobs(ctx, r.owner, r.name, runID, &gh.ListWorkflowJobsOptions{Filter: "latest", ListOptions: page})
		if err != nil || found == nil {
			return nil, resp, err
		}
		return found.Jobs, resp, nil
	})
}

// jobFrom converts a job of go-github.
func jobFrom(job *gh.WorkflowJob) forge.Job {
	j := forge.Job{ID: job.GetID()}
	for _, step := range job.Steps {
		j.Steps = append(j.Steps, forge.Step{
			Name: step.GetName(), Conclusion: step.GetConclusion(), Started: step.GetStartedAt().Time, Completed: step.GetCompletedAt().Time,
		})
	}
	return j
}

// JobLog opens the log of a job. It is usually on another host, which gets neither the token nor
// Options.UserAgent.
func (r *repository) JobLog(ctx context.Context, jobID int64) (io.ReadCloser, error) {
	call := apiCall{action: fmt.Sprintf("read the log of the job %d in %s", jobID, r.fullName), permission: readActions}
	const expired = "it is not kept any more: a repository's settings say for how many days logs are"
	place, err := r.storageURL(ctx, call, fmt.Sprintf("jobs/%d/logs", jobID), expired)
	if err != nil {
		return nil, err
	}
	response, err := r.openStorage(ctx, place)
	if err != nil {
		return nil, r.downloadError(ctx, call, place, err)
	}
	return response.Body, nil
}

// notRerunnable lists messages of GitHub for jobs that cannot be rerun, whatever the permission.
var notRerunnable = []string{"already running", "over a month ago", "cannot be rerun", "cannot be retried", "Unable to retry"}

// RerunFailedJobs runs failed jobs again. If GitHub forbids that whatever the permission, the error
// is Invalid instead of Forbidden.
func (r *repository) RerunFailedJobs(ctx context.Context, runID int64) error {
	call := apiCall{action: fmt.Sprintf("have the failed jobs of the run %d in %s run again", runID, r.fullName), permission: writeActions}
	err := r.runCall(ctx, call, func() error {
		_, err := r.rest.Actions.RerunFailedJobsByID(ctx, r.owner, r.name, runID)
		return err
	})
	if e, ok := errors.AsType[*forge.Error](err); ok && e.Kind == forge.Forbidden && slices.ContainsFunc(notRerunnable, func(words string) bool { return strings.Contains(e.Message, words) }) {
		e.Kind = forge.Invalid
		e.Remedy = r.remedy(e, call)
	}
	return err
}

// PullRequestsWith returns the open pull requests whose head is a commit.
func (r *repository) PullRequestsWith(ctx context.Context, sha string) ([]*forge.PullRequest, error) {
	call := apiCall{action: fmt.Sprintf("look for the pull requests of the commit %.12s in %s", sha, r.fullName), permission: readPulls, objects: []string{sha}}
	all, err := listUpTo(ctx, pageSize, r, call, r.pullRequestFrom, func(page gh.ListOptions) ([]*gh.PullRequest, *gh.Response, error) {
		return r.rest.PullRequests.ListPullRequestsWithCommit(ctx, r.owner, r.name, sha, &page)
	})
	return slices.DeleteFunc(all, func(p *forge.PullRequest) bool { return p.State != "open" || p.HeadSHA != sha }), err
}

// PushedBy looks for the account in the newest activities of the branch.
func (r *repository) PushedBy(ctx context.Context, branch, sha string) (forge.User, error) {
	call := apiCall{action: fmt.Sprintf("ask who pushed to the branch %s of %s", branch, r.fullName), permission: "contents: read", objects: []string{sha}, ref: headsPrefix + branch}
	var pushes []struct { // not in go-github v60
		After string
		Actor *gh.User
	}
	query := url.Values{"ref": {"refs/heads/" + branch}, "per_page": {strconv.Itoa(pageSize)}}
	if err := r.getJSON(ctx, call, "activity?"+query.Encode(), &pushes); err != nil {
		return forge.User{}, err
	}
	for _, push := range pushes {
		if push.After == sha {
			return userFrom(push.Actor), nil
		}
	}
	return forge.User{}, nil
}
