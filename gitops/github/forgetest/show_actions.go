package forgetest

import (
	"cmp"
	"fmt"
	"path"
	"time"
)

// showWorkflow returns a workflow run in GitHub's form.
func (f *Forge) showWorkflow(r *Repository, w *workflowRun) object {
	status, conclusion := w.conclusion()
	head := f.showRepository(r)
	if w.HeadRepository != "" {
		head["full_name"], head["name"] = w.HeadRepository, path.Base(w.HeadRepository)
	}
	return object{
		"id": w.ID, "name": w.Name, "path": ".github/workflows/ci.yml", "head_branch": w.Branch, "head_sha": w.SHA,
		"run_attempt": w.attempt, "event": cmp.Or(w.Event, "push"), "status": status, "conclusion": orNull(conclusion),
		"html_url":   fmt.Sprintf("%s/actions/runs/%d", f.pageURL(r), w.ID),
		"created_at": w.created, "updated_at": w.created, "run_started_at": w.created,
		"head_repository": head, "repository": f.showRepository(r), "actor": f.showUser(f.user),
	}
}

// showJob returns a job in GitHub's form.
func (f *Forge) showJob(r *Repository, w *workflowRun, job *actionsJob) object {
	shown := object{
		"id": job.id, "run_id": w.ID, "run_attempt": job.attempt, "head_sha": w.SHA, "head_branch": w.Branch, "html_url": f.pageOfJob(r, job),
		"name": job.Name, "status": job.Status, "conclusion": orNull(job.Conclusion), "runner_name": orNull(job.Runner),
		"created_at": job.at, "started_at": job.at, "completed_at": job.endTime(),
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

// endTime returns the time at which a job ended, or nil while it runs.
func (job *actionsJob) endTime() any {
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
	shown["check_suite"], shown["completed_at"] = object{"id": w.ID}, job.endTime()
	return shown
}

// showCheck returns a check run in GitHub's form.
func (f *Forge) showCheck(r *Repository, c *check) object {
	shown := object{
		"id": c.id, "head_sha": c.SHA, "name": c.Name, "html_url": fmt.Sprintf("%s/runs/%d", f.pageURL(r), c.id), "details_url": orNull(c.URL),
		"status": c.Status, "conclusion": orNull(c.Conclusion), "started_at": c.at, "completed_at": nil, "check_suite": object{"id": numberOf(c.App + c.SHA)},
		"app": object{"slug": c.App, "name": c.App}, "output": object{"title": orNull(c.Title), "summary": orNull(c.Summary)},
	}
	if c.Status == "completed" {
		shown["completed_at"] = c.at.Add(time.Minute)
	}
	return shown
}

func (f *Forge) showStatus(c *check) object {
	return object{"id": c.id, "state": c.Conclusion, "context": c.Name, "description": orNull(c.Title), "target_url": orNull(c.URL), "created_at": c.at, "updated_at": c.at}
}

// showPush returns a push as an activity in GitHub's form.
func (f *Forge) showPush(p push) object {
	kind := "push"
	if p.before == noCommit {
		kind = "branch_creation"
	}
	return object{
		"id": p.id, "before": p.before, "after": p.after, "ref": p.ref,
		"timestamp": p.at, "activity_type": kind, "actor": f.showUser(p.by),
	}
}
