package forgetest

import (
	"cmp"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// WorkflowRun is a workflow run to add. Its jobs become checks of its commit.
type WorkflowRun struct {
	ID             int64  // 0 means an id that the forge chooses
	Name           string // of the workflow
	Event          string // "" means push
	Branch, SHA    string
	HeadRepository string // OWNER/NAME that contains the commit; "" means this repository
	Jobs           []Job
	// Again lists the results of jobs when they run again, by name. A job that is not listed keeps
	// its result.
	Again []Job
}

// Job is a job of a workflow run, with its steps.
type Job struct {
	Name       string
	Status     string // "" means completed
	Conclusion string // "" means success, if the job is completed
	Runner     string
	Steps      []Step
	Log        string
	LogBytes   int64 // to which Log is repeated before its end; 0 for a log without repetition
	LogExpired bool
	// LogAt is the URL to which a request for the log is redirected. "" means the forge's own
	// store, which is outside its API.
	LogAt string
}

// Step is a step of a job.
type Step struct {
	Name       string
	Conclusion string // "" means success
	Started    time.Time
	Completed  time.Time
}

// Check is a check run of a commit. If App is "", it is a commit status.
type Check struct {
	SHA            string
	Name           string
	App            string // slug
	Status         string // "" means completed
	Conclusion     string // for a status, its state
	Title, Summary string // for a status, Title is its description
	URL            string
}

type workflowRun struct {
	WorkflowRun
	attempt int
	jobs    []*actionsJob // of all attempts, the oldest first
	created time.Time
}

type actionsJob struct {
	Job
	id, run int64
	attempt int
	at      time.Time
}

type check struct {
	Check
	id int64
	at time.Time
}

// push records that a branch was moved.
type push struct {
	id            int64
	ref           string
	before, after string
	by            User
	at            time.Time
}

// githubActions is the app that reports jobs as check runs.
const githubActions = "github-actions"

// AddWorkflow adds a workflow run with its jobs and returns its id.
func (r *Repository) AddWorkflow(w WorkflowRun) int64 {
	r.forge.mu.Lock()
	defer r.forge.mu.Unlock()
	w.ID = cmp.Or(w.ID, r.forge.newID())
	added := &workflowRun{WorkflowRun: w, attempt: 1, created: r.forge.now()}
	for _, job := range w.Jobs {
		added.add(r.forge, job)
	}
	r.workflows = append(r.workflows, added)
	return w.ID
}

func (w *workflowRun) add(f *Forge, job Job) {
	job.Status = cmp.Or(job.Status, "completed")
	if job.Status == "completed" {
		job.Conclusion = cmp.Or(job.Conclusion, "success")
	}
	w.jobs = append(w.jobs, &actionsJob{Job: job, id: f.newID(), run: w.ID, attempt: w.attempt, at: f.now()})
}

// newestJobs returns the jobs, each in its newest attempt.
func (w *workflowRun) newestJobs() []*actionsJob {
	var all []*actionsJob
	for _, job := range w.jobs {
		same := func(other *actionsJob) bool { return other.Name == job.Name }
		if i := slices.IndexFunc(all, same); i >= 0 {
			all[i] = job
			continue
		}
		all = append(all, job)
	}
	return all
}

// requestedJobs returns the jobs that a call asks for: those of filter=all, or the newest attempts.
func (w *workflowRun) requestedJobs(c *call) []*actionsJob {
	if c.URL.Query().Get("filter") == "all" {
		return w.jobs
	}
	return w.newestJobs()
}

// conclusion returns the status of the run, and its conclusion or "" while it runs. The first unsuccessful job
// decides.
func (w *workflowRun) conclusion() (status, conclusion string) {
	conclusion = "success"
	for _, job := range w.newestJobs() {
		if job.Status != "completed" {
			return "in_progress", ""
		}
		if conclusion == "success" && job.Conclusion != "skipped" {
			conclusion = job.Conclusion
		}
	}
	return "completed", conclusion
}

// Attempts returns the number of attempts of a workflow run. Unknown runs have 0.
func (r *Repository) Attempts(run int64) int {
	r.forge.mu.Lock()
	defer r.forge.mu.Unlock()
	if w := r.workflow(run); w != nil {
		return w.attempt
	}
	return 0
}

// AddCheck adds a check run or a status.
func (r *Repository) AddCheck(c Check) {
	r.forge.mu.Lock()
	defer r.forge.mu.Unlock()
	c.Status = cmp.Or(c.Status, "completed")
	r.checks = append(r.checks, &check{Check: c, id: r.forge.newID(), at: r.forge.now()})
}

// AddPush records that an account moved a branch to its current commit. The forge records pushes
// that it serves by itself.
func (r *Repository) AddPush(branch string, by User) {
	r.forge.mu.Lock()
	defer r.forge.mu.Unlock()
	sha, _ := r.branch(branch)
	r.recordPush(push{ref: "refs/heads/" + branch, after: sha, by: by})
}

func (r *Repository) recordPush(p push) {
	p.id, p.at = r.forge.newID(), r.forge.now()
	p.before = cmp.Or(p.before, noCommit)
	r.pushes = append(r.pushes, p)
}

const noCommit = "0000000000000000000000000000000000000000"

// refs returns the commits of all refs, by name. It reads loose ones first, because git may be packing them.
func (r *Repository) refs() map[string]string {
	all := map[string]string{}
	folder := os.DirFS(r.Dir)
	_ = fs.WalkDir(folder, "refs", func(name string, _ fs.DirEntry, _ error) error {
		raw, _ := fs.ReadFile(folder, name) // fails for a folder, and for a lock file that has become the ref
		if sha := strings.TrimSpace(string(raw)); objectName.MatchString(sha) && path.Ext(name) != ".lock" {
			all[name] = sha
		}
		return nil
	})
	packed, _ := fs.ReadFile(folder, "packed-refs")
	for line := range strings.Lines(string(packed)) {
		sha, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if objectName.MatchString(sha) && all[name] == "" {
			all[name] = sha
		}
	}
	return all
}

// watchPush calls serve and records the refs that it moved.
func (f *Forge) watchPush(r *Repository, serve func()) {
	before := r.refs()
	serve()
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, sha := range r.refs() {
		if before[name] != sha {
			r.recordPush(push{ref: name, before: before[name], after: sha, by: f.user})
		}
	}
}

func (r *Repository) workflow(id int64) *workflowRun {
	for _, w := range r.workflows {
		if w.ID == id {
			return w
		}
	}
	return nil
}

// ofWorkflow finds the workflow run that a path names. It answers "not found" without a token;
// github.com would not for a public repository.
func ofWorkflow(handle func(*Forge, *call, *workflowRun) answer) handler {
	return func(f *Forge, c *call) answer {
		id, _ := strconv.ParseInt(c.PathValue("run"), 10, 64)
		w := c.repository.workflow(id)
		if w == nil || c.credentials != right {
			return notFound()
		}
		return handle(f, c, w)
	}
}

func getWorkflowRun(f *Forge, c *call, w *workflowRun) answer {
	return ok(f.showWorkflow(c.repository, w))
}

func listJobs(f *Forge, c *call, w *workflowRun) answer {
	return countedPage(f, c, "jobs", w.requestedJobs(c), func(job *actionsJob) object { return f.showJob(c.repository, w, job) })
}

// rerunFailedJobs adds a new attempt of each failed job, which ends at once.
func rerunFailedJobs(f *Forge, _ *call, w *workflowRun) answer {
	status, conclusion := w.conclusion()
	if status != "completed" {
		return failure(http.StatusForbidden, "The workflow run cannot be rerun: This workflow is already running")
	}
	if conclusion == "success" {
		return failure(http.StatusForbidden, "The workflow run cannot be rerun: it has no failed jobs")
	}
	failed := w.newestJobs()
	w.attempt++
	for _, job := range failed {
		if job.Conclusion == "success" || job.Conclusion == "skipped" {
			continue
		}
		next := job.Job
		if i := slices.IndexFunc(w.Again, func(j Job) bool { return j.Name == job.Name }); i >= 0 {
			next = w.Again[i]
		}
		w.add(f, next)
	}
	return created(object{})
}

// job returns a job by its id in decimal digits, or nil.
func (r *Repository) job(id string) *actionsJob {
	for _, w := range r.workflows {
		for _, job := range w.jobs {
			if strconv.FormatInt(job.id, 10) == id {
				return job
			}
		}
	}
	return nil
}

// jobLog redirects a request with the token to the log.
func jobLog(f *Forge, c *call) answer {
	job := c.repository.job(c.PathValue("id"))
	switch {
	case c.credentials != right:
		return failure(http.StatusForbidden, "Must have admin rights to Repository.")
	case job == nil || job.Status != "completed":
		return notFound()
	case job.LogExpired:
		return failure(http.StatusGone, "Server Error")
	}
	return answer{status: http.StatusFound, location: cmp.Or(job.LogAt, f.URL+job.storedAt()+signed)}
}

func (job *actionsJob) storedAt() string { return fmt.Sprintf("%slogs/%d.txt", storePath, job.id) }

// listCheckRuns lists the jobs of workflows and the check runs of other apps for a commit.
func listCheckRuns(f *Forge, c *call) answer {
	r, sha := c.repository, c.PathValue("ref")
	var list []object
	for _, w := range r.workflows {
		if w.SHA != sha {
			continue
		}
		for _, job := range w.requestedJobs(c) {
			list = append(list, f.showJobAsCheck(r, w, job))
		}
	}
	for _, each := range r.checks {
		if each.SHA == sha && each.App != "" {
			list = append(list, f.showCheck(r, each))
		}
	}
	return countedPage(f, c, "check_runs", list, func(shown object) object { return shown })
}

// combinedStatus answers with the newest status of each name.
func combinedStatus(f *Forge, c *call) answer {
	r, sha := c.repository, c.PathValue("ref")
	var list []*check
	state := "success"
	for _, each := range r.checks {
		if each.SHA != sha || each.App != "" {
			continue
		}
		list = slices.DeleteFunc(list, func(other *check) bool { return other.Name == each.Name })
		list = append(list, each)
	}
	for _, each := range list {
		if each.Conclusion != "success" {
			state = each.Conclusion
		}
	}
	if len(list) == 0 {
		state = "pending"
	}
	reply := page(f, c, list, f.showStatus)
	reply.body = object{
		"state": state, "sha": sha, "total_count": len(list), "statuses": reply.body,
	}
	return reply
}

// pullsOfCommit lists the pull requests, open or closed, whose head is the commit.
func pullsOfCommit(f *Forge, c *call) answer {
	r := c.repository
	var list []*issue
	for _, i := range r.issues {
		if i.pull != nil && r.tip(i.pull.head, i.pull.headSHA) == c.PathValue("ref") {
			list = append(list, i)
		}
	}
	return page(f, c, list, func(i *issue) object { return f.showPull(r, i) })
}

// listActivity lists pushes, the newest first.
func listActivity(f *Forge, c *call) answer {
	if c.credentials != right {
		return notFound()
	}
	ref := c.URL.Query().Get("ref")
	if ref != "" && !strings.HasPrefix(ref, "refs/") {
		ref = "refs/heads/" + ref
	}
	var list []push
	for _, p := range slices.Backward(c.repository.pushes) {
		if ref == "" || p.ref == ref {
			list = append(list, p)
		}
	}
	return page(f, c, list, f.showPush)
}
