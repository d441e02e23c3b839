package runner

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/settings"
)

// repositoryName is OWNER/REPO from the job, the issue, Actions or the
// checkout's origin, in this order.
func (r *run) repositoryName(server string) string {
	if r.history != nil && r.history.Workspace.Repository != "" {
		return r.history.Workspace.Repository // the run goes on for the same one
	}
	if r.job.Repository.Name != "" {
		return r.job.Repository.Name
	}
	if issue, err := job.ParseIssue(r.job.Task.Issue); err == nil && issue.Repository != "" {
		return issue.Repository
	}
	if name := r.env.Get("GITHUB_REPOSITORY"); name != "" {
		return name
	}
	if r.checkout == nil {
		return ""
	}
	return nameInURL(r.checkout.Origin(), server)
}

// nameInURL is OWNER/REPO when origin is a repository on server: an http(s)
// URL, ssh://git@host/owner/repo or git@host:owner/repo.
func nameInURL(origin, server string) string {
	s, err := url.Parse(server)
	if err != nil || origin == "" {
		return ""
	}
	path := ""
	if host, rest, ok := strings.Cut(origin, ":"); ok && !strings.Contains(origin, "://") {
		if _, after, found := strings.Cut(host, "@"); found {
			host = after
		}
		if strings.EqualFold(host, s.Hostname()) {
			path = rest
		}
	} else if u, err := url.Parse(origin); err == nil && strings.EqualFold(u.Hostname(), s.Hostname()) && (u.Scheme == "ssh" || u.Host == s.Host) {
		path = u.Path
	}
	path = strings.TrimSuffix(strings.Trim(path, "/"), ".git")
	if job.ValidateRepository(path) != nil {
		return ""
	}
	return path
}

// readTask reads what is to be done, and finds its key.
func (r *run) readTask(ctx context.Context) error {
	var err error
	switch t := r.job.Task; {
	case r.fromEvent():
		err = r.readEventTask(ctx)
	case t.Issue != "":
		err = r.readIssue(ctx)
	case t.PromptFile != "":
		err = r.readPromptFile(ctx)
	default:
		r.task = task{source: "prompt", name: "prompt", text: strings.TrimSpace(t.Prompt)}
	}
	if err != nil {
		return err
	}
	if r.job.Task.Title != "" {
		r.task.title = r.job.Task.Title
	}
	if r.options.JobFile != "" && r.task.source == "prompt" {
		r.task.source, r.task.name = "job", "job "+r.set.File.Name
	}
	r.task.text = r.rec.Redact(r.task.text)
	r.task.key = r.taskKey()
	return nil
}

// taskKey is the job's key. A job that takes its tasks from events has one for
// each issue.
func (r *run) taskKey() string {
	switch {
	case r.pull != nil:
		return strings.TrimPrefix(r.pull.Head, runBranches)
	case r.fromEvent() && r.task.issue != nil:
		return strings.TrimPrefix(fmt.Sprintf("%s-issue-%d", r.job.Name, r.task.issue.Number), "-")
	}
	return r.job.Key(r.task.text)
}

// readPromptFile reads task.prompt_file, which stands beside the job file.
func (r *run) readPromptFile(ctx context.Context) error {
	file, err := r.source.ReadFile(ctx, r.baseCommit(), r.set.BesideJob(r.job.Task.PromptFile), settings.MaxFile)
	if err != nil {
		return err
	}
	text, err := settings.PromptText(r.job.Task.PromptFile, file.Content)
	r.task = task{source: "prompt", name: "prompt", text: text}
	return err
}

// readIssue takes the task from a GitHub issue and what trusted people wrote
// below it.
func (r *run) readIssue(ctx context.Context) error {
	ref, err := job.ParseIssue(r.job.Task.Issue)
	if err != nil {
		return err // the job was checked
	}
	if ref.Repository == "" {
		ref.Repository = r.repo.Name()
	}
	if !r.repo.known() {
		return outcome.Stopf(outcome.InvalidInput, "no_repository",
			"task.issue is %s and no repository is known; write OWNER/REPO#%d or set repository.name.", r.job.Task.Issue, ref.Number)
	}
	if r.asItWas(ref) != nil {
		r.askedAt = r.event.OnIssueAt()
	}
	issue, err := r.openIssue(ctx, ref)
	if err != nil {
		return err
	}
	in, err := r.issueInput(ctx, ref, issue)
	if err != nil {
		return err
	}
	r.task = task{source: "issue"}
	r.adoptIssue(ref, issue)
	return r.takeInput(in, ref.String())
}

func issueFailure(ref job.Issue, err error) error {
	if forge.KindOf(err) == forge.NotFound {
		return outcome.Stopf(outcome.InvalidInput, "issue_not_found",
			"The issue %s is not there, or the token may not read it; check the number, and that GITHUB_TOKEN has the permission issues: read.", ref).Because(err)
	}
	return forgeFailure(fmt.Sprintf("The issue %s cannot be read", ref), err)
}
