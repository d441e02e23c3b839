package forgetest

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// showWorkflow returns a workflow run in GitHub's form.
func (f *Forge) showWorkflow(r *Repository, w *workflowRun) object {
	at := fmt.Sprintf("%s/actions/runs/%d", f.apiURL(r), w.ID)
	status, conclusion := w.conclusion()
	head := f.showRepository(r)
	if w.HeadRepository != "" {
		head["full_name"], head["name"] = w.HeadRepository, path.Base(w.HeadRepository)
	}
	shown := object{
		"id": w.ID, "name": w.Name, "node_id": fmt.Sprintf("WFR_forgetest_%d", w.ID), "path": ".github/workflows/ci.yml",
		"head_branch": w.Branch, "head_sha": w.SHA, "run_number": 1, "run_attempt": w.attempt, "event": cmp.Or(w.Event, "push"),
		"display_title": w.Name, "status": status, "conclusion": orNull(conclusion), "workflow_id": numberOf("workflow " + w.Name),
		"check_suite_id": w.ID, "check_suite_node_id": fmt.Sprintf("CS_forgetest_%d", w.ID),
		"html_url": fmt.Sprintf("%s/actions/runs/%d", f.pageURL(r), w.ID), "pull_requests": []object{},
		"created_at": w.created, "updated_at": w.created, "run_started_at": w.created,
		"head_commit": nil, "head_repository": head, "repository": f.showRepository(r),
		"workflow_url": fmt.Sprintf("%s/actions/workflows/%d", f.apiURL(r), numberOf("workflow "+w.Name)),
		"url":          at, "check_suite_url": fmt.Sprintf("%s/check-suites/%d", f.apiURL(r), w.ID),
		"actor": f.showUser(f.user), "triggering_actor": f.showUser(f.user),
	}
	for field, below := range map[string]string{"jobs_url": "jobs", "logs_url": "logs", "cancel_url": "cancel", "rerun_url": "rerun", "artifacts_url": "artifacts"} {
		shown[field] = at + "/" + below
	}
	return shown
}

// showJob returns a job in GitHub's form.
func (f *Forge) showJob(r *Repository, w *workflowRun, job *actionsJob) object {
	shown := object{
		"id": job.id, "node_id": fmt.Sprintf("CR_forgetest_%d", job.id), "run_id": w.ID, "run_attempt": job.attempt,
		"run_url": fmt.Sprintf("%s/actions/runs/%d", f.apiURL(r), w.ID), "head_sha": w.SHA, "head_branch": w.Branch,
		"workflow_name": w.Name, "name": job.Name, "status": job.Status, "conclusion": orNull(job.Conclusion),
		"url": fmt.Sprintf("%s/actions/jobs/%d", f.apiURL(r), job.id), "html_url": f.pageOfJob(r, job),
		"check_run_url": fmt.Sprintf("%s/check-runs/%d", f.apiURL(r), job.id), "labels": []string{"ubuntu-latest"},
		"runner_id": nil, "runner_name": orNull(job.Runner), "runner_group_id": nil, "runner_group_name": nil,
		"created_at": job.at, "started_at": job.at, "completed_at": job.ended(),
	}
	steps := []object{}
	for i, step := range job.Steps {
		steps = append(steps, object{
			"name": step.Name, "status": "completed", "conclusion": cmp.Or(step.Conclusion, "success"), "number": i + 1,
			"started_at": orNull(step.Started), "completed_at": orNull(step.Completed),
		})
	}
	shown["steps"] = steps
	return shown
}

// ended returns the time at which a job ended, or nil while it runs.
func (job *actionsJob) ended() any {
	if job.Status != "completed" {
		return nil
	}
	return job.at.Add(time.Minute)
}

func (f *Forge) pageOfJob(r *Repository, job *actionsJob) string {
	return fmt.Sprintf("%s/actions/runs/%d/job/%d", f.pageURL(r), job.run, job.id)
}

func (f *Forge) showJobAsCheck(r *Repository, w *workflowRun, job *actionsJob) object {
	shown := f.showCheck(r, &check{id: job.id, at: job.at, Check: Check{
		SHA: w.SHA, Name: job.Name, App: githubActions, Status: job.Status, Conclusion: job.Conclusion, URL: f.pageOfJob(r, job),
	}})
	shown["check_suite"], shown["completed_at"] = object{"id": w.ID}, job.ended()
	return shown
}

// showCheck returns a check run in GitHub's form.
func (f *Forge) showCheck(r *Repository, c *check) object {
	at := fmt.Sprintf("%s/check-runs/%d", f.apiURL(r), c.id)
	shown := object{
		"id": c.id, "node_id": fmt.Sprintf("CR_forgetest_%d", c.id), "head_sha": c.SHA, "external_id": "", "name": c.Name, "url": at,
		"html_url": fmt.Sprintf("%s/runs/%d", f.pageURL(r), c.id), "details_url": orNull(c.URL), "status": c.Status, "conclusion": orNull(c.Conclusion),
		"started_at": c.at, "completed_at": nil, "check_suite": object{"id": numberOf(c.App + c.SHA)}, "pull_requests": []object{},
		"app": f.showApp(c.App), "output": object{
			"title": orNull(c.Title), "summary": orNull(c.Summary), "text": nil, "annotations_count": 0, "annotations_url": at + "/annotations",
		},
	}
	if c.Status == "completed" {
		shown["completed_at"] = c.at.Add(time.Minute)
	}
	return shown
}

func (f *Forge) showApp(slug string) object {
	return object{
		"id": numberOf("app " + slug), "slug": slug, "node_id": "A_forgetest_" + slug, "name": slug, "description": "",
		"owner": f.showUser(User{Login: "github", Type: "Organization"}), "external_url": "https://example.invalid/" + slug,
		"html_url": f.URL + "/apps/" + slug, "created_at": time.Unix(0, 0).UTC(), "updated_at": time.Unix(0, 0).UTC(),
		"permissions": object{"checks": "write"}, "events": []string{},
	}
}

func (f *Forge) showStatus(r *Repository, c *check) object {
	return object{
		"id": c.id, "node_id": fmt.Sprintf("SC_forgetest_%d", c.id), "state": c.Conclusion, "context": c.Name, "description": orNull(c.Title),
		"target_url": orNull(c.URL), "avatar_url": nil, "url": f.apiURL(r) + "/statuses/" + c.SHA, "created_at": c.at, "updated_at": c.at,
	}
}

var noReply = regexp.MustCompile(`^(\d+)\+(.+)@users\.noreply\.github\.com$`)

// accountOf returns the account of a noreply mail address, or nil for other addresses.
func (f *Forge) accountOf(by signature) any {
	m := noReply.FindStringSubmatch(by.Email)
	if m == nil {
		return nil
	}
	id, _ := strconv.ParseInt(m[1], 10, 64)
	kind := "User"
	if strings.HasSuffix(m[2], "[bot]") {
		kind = "Bot"
	}
	return f.showUser(User{Login: m[2], ID: id, Type: kind})
}

// showRepositoryCommit returns a commit with its accounts in GitHub's form.
func (f *Forge) showRepositoryCommit(r *Repository, c commit) object {
	at := f.apiURL(r) + "/commits/" + c.sha
	page := f.pageURL(r) + "/commit/" + c.sha
	return object{
		"url": at, "sha": c.sha, "node_id": "C_forgetest_" + c.sha, "html_url": page, "comments_url": at + "/comments",
		"author": f.accountOf(c.author), "committer": f.accountOf(c.committer),
		"parents": showAll(c.parents, func(sha string) object {
			return object{"sha": sha, "url": f.apiURL(r) + "/commits/" + sha, "html_url": f.pageURL(r) + "/commit/" + sha}
		}),
		"commit": object{
			"url": f.commitURL(r, c.sha), "author": c.author, "committer": c.committer, "message": c.message, "comment_count": 0,
			"tree": object{"sha": c.tree, "url": f.apiURL(r) + "/git/trees/" + c.tree}, "verification": f.showVerification(c),
		},
	}
}

// showPush returns a push as an activity in GitHub's form.
func (f *Forge) showPush(p push) object {
	kind := "push"
	if p.before == noCommit {
		kind = "branch_creation"
	}
	return object{
		"id": p.id, "node_id": fmt.Sprintf("PSH_forgetest_%d", p.id), "before": p.before, "after": p.after, "ref": p.ref,
		"timestamp": p.at, "activity_type": kind, "actor": f.showUser(p.by),
	}
}
