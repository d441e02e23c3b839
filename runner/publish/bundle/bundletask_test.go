package bundle

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/task/form"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

func TestMatchesTaskKeys(t *testing.T) {
	for _, test := range []struct {
		name, key string
		named     bool // the key is one of the job's
		number    int
		of        bool // it is the one of the issue
	}{
		{"", "anything", true, 7, false},
		{"", "issue-7", true, 7, true},
		{"", "nightly-issue-7", true, 7, true},
		{"", "issue-77", true, 7, false},
		{"nightly", "nightly", true, 7, false},
		{"nightly", "nightly-issue-7", true, 7, true},
		{"nightly", "nightly-issue-8", true, 7, false},
		{"nightly", "issue-7", false, 7, false},
		{"nightly", "nightly-2", false, 7, false},
		{"nightly", "nightlyissue-7", false, 7, false},
		{"nightly", "nightly-x-issue-7", false, 7, false},
		{"a-issue-3", "a-issue-3-issue-7", true, 7, true},
	} {
		k := knownTask{job: &job.Job{Name: test.name}}
		if k.isKeyOfJob(test.key) != test.named || k.isKeyOfIssue(test.number, test.key) != test.of {
			t.Errorf("%q of the job %q: named %v, of issue %d: %v", test.key, test.name, k.isKeyOfJob(test.key), test.number, k.isKeyOfIssue(test.number, test.key))
		}
	}
}

// Where no event tells the task, the job of this half does.
func TestBundleMustMatchJob(t *testing.T) {
	const other = "than the job of agent-ci publish"
	for name, test := range map[string]struct {
		key   string
		job   job.Job
		words string // of the refusal; empty for none
	}{
		"its issue":               {key: "issue-7", job: job.Job{Task: job.Task{Issue: "#7"}}},
		"its issue, in full":      {key: "issue-7", job: job.Job{Task: job.Task{Issue: "Octo/Widgets#7"}}},
		"another issue":           {key: "issue-7", job: job.Job{Task: job.Task{Issue: "#8"}}, words: other + ", whose task.issue is octo/widgets#8"},
		"another repository's":    {key: "issue-7", job: job.Job{Task: job.Task{Issue: "octo/other#7"}}, words: other},
		"its name":                {key: "nightly", job: job.Job{Name: "nightly"}},
		"its name and an issue":   {key: "nightly-issue-7", job: job.Job{Name: "nightly"}},
		"another name":            {key: "weekly", job: job.Job{Name: "nightly"}, words: other},
		"another name, on a pin":  {key: "weekly", job: job.Job{Name: "nightly", PullRequest: job.PullRequest{Branch: "agent-ci/weekly"}}},
		"a key of another's name": {key: "weekly", job: job.Job{Name: "nightly", Task: job.Task{Issue: "#7"}}, words: other},
	} {
		task := intake.Task{Key: test.key, Branch: intake.BranchPrefix + test.key, Issue: &form.Issue{Repository: "octo/widgets", Number: 7}}
		err := knownTask{job: &test.job}.refuseOtherTask("octo/widgets", nil, task)
		if test.words != "" {
			outcometest.Want(t, err, "bundle", test.words)
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// In the workflow of an event the bundle is of what the event is about.
func TestBundleMustMatchEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	env := w.env
	const about7 = `{"action": "labeled", "sender": {"login": "linus", "id": 3}, "label": {"name": "agent-ci"}, "issue": {"number": 7}}`
	for name, test := range map[string]struct {
		event, payload string
		set            []string
		words          string
		actor          string
	}{
		"its issue":        {event: "issues", payload: about7, actor: "linus"},
		"another issue":    {event: "issues", payload: strings.Replace(about7, "7", "8", 1), words: "than the event, which is about issue octo/widgets#8"},
		"with a name":      {event: "issues", payload: about7, set: []string{"name=nightly"}, words: "which is about issue octo/widgets#7"},
		"on a pin":         {event: "issues", payload: about7, set: []string{"name=nightly", "pull_request.branch=agent-ci/issue-7"}, actor: "linus"},
		"a comment":        {event: "issue_comment", payload: `{"issue": {"number": 7}, "sender": {"login": "bot"}, "comment": {"user": {"login": "linus", "id": 3}}}`, actor: "linus"},
		"a dispatch":       {event: "workflow_dispatch", payload: `{"inputs": {"issue": "7"}}`, actor: "ada"},
		"another dispatch": {event: "workflow_dispatch", payload: `{"inputs": {"issue": "8"}}`, words: "than the event, which is about issue octo/widgets#8"},
		"no task of its":   {event: "push", payload: `{"sender": {"login": "linus", "id": 3}}`, actor: "ada"},
		"a task of a job":  {event: "issues", payload: about7, set: []string{"task.prompt=x"}, actor: "ada"},
		"it can't be read": {event: "issues", payload: `{`, words: "The event cannot be used"},
	} {
		t.Run(name, func(t *testing.T) {
			w.t, w.env, w.set = t, env, test.set
			w.happens(test.event, test.payload)
			_, p, err := w.propose(nil)
			if test.words != "" {
				must.Fail(t, test.words, err)
				return
			}
			must.Do(w.t, err)
			must.Same(t, test.actor, p.Task.Actor, "asked")
		})
	}
}

// On a pull request its author may have written the commit that the checkout stands
// on: only what this half was given counts, and the base is that of the pull request.
func TestPullEventLimitsTaskAndBase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	to, p, err := w.propose(nil)
	must.Do(w.t, err)
	w.publish(to, p)
	w.git(w.dir, "checkout", "--quiet", "-b", "next")
	w.commit(".github/agent-ci.yml", "repository:\n  base: next\n", "Choose the base")
	w.git(w.dir, "push", "--quiet", w.repo.Dir, "next")
	w.git(w.dir, "checkout", "--quiet", "main")
	first := func() *SecondHalf {
		rec := w.firstHalf(nil)
		half := w.half(rec)
		return &half
	}
	w.happens("pull_request_review", `{"pull_request": {"number": 1, "base": {"ref": "main"}}, "review": {"user": {"login": "linus", "id": 3}}}`)
	w.git(w.dir, "checkout", "--quiet", "next")
	half := first()
	j, err := half.knownJob(t.Context())
	if err != nil || j.Repository.Base != "" {
		t.Errorf("the pull request's own commit is believed: %+v, %v", j, err)
	}
	w.git(w.dir, "checkout", "--quiet", "main")
	_, p, err = w.propose(nil)
	if err != nil || p.Task.Actor != "linus" {
		t.Errorf("asked by %q, %v", p.Task.Actor, err)
	}
	w.refused(func(s *told) { s.started.Key, s.workspace.Branch = "issue-8", "agent-ci/issue-8" }, "bundle", "which is about pull request #1")
	w.refused(func(s *told) { s.task.Issue = "octo/widgets#8" }, "bundle", "which is about pull request #1")
	w.repo.SetPullRequest(1, func(p *forgetest.PullRequest) { p.Base = "next" })
	_, _, err = w.propose(func(s *told) { s.workspace.Base = "other" })
	outcometest.Want(t, err, "bundle", "the event's pull request #1 has the base next, the default branch is main")
}

// A fork's run can write the whole bundle.
func TestRefusesForkRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for head, refused := range map[string]bool{`{"full_name": "Octo/Widgets"}`: false, `{"full_name": "fork/widgets"}`: true, `null`: true} {
		w.happens("workflow_run", `{"workflow_run": {"head_repository": `+head+`}}`)
		_, _, err := w.propose(nil)
		if refused {
			outcometest.Want(t, err, "fork", "was for a fork")
		} else if err != nil {
			t.Errorf("%s: %v", head, err)
		}
	}
}

// What is open on the branch may be for another issue, which no event or job of
// this half tells.
func TestRefusesBranchOfOtherTask(t *testing.T) {
	t.Parallel()
	greet := func(issue string) func(*told) {
		return func(s *told) {
			s.started.Key, s.workspace.Branch, s.task.Issue = "greet", "agent-ci/greet", issue
		}
	}
	w := newWorld(t)
	to, p, err := w.propose(greet("octo/widgets#7"))
	must.Do(w.t, err)
	w.publish(to, p)
	w.refused(greet("octo/widgets#8"), "other_task", "Pull request #1 was made for issue #7")
	w.refused(greet(""), "other_task", "--set pull_request.branch=agent-ci/greet")
	if _, _, err := w.propose(greet("octo/widgets#7")); err != nil {
		t.Errorf("its own: %v", err)
	}
	w.repo.SetPullRequest(1, func(p *forgetest.PullRequest) { p.State, p.Merged = "closed", true })
	if _, _, err := w.propose(greet("octo/widgets#8")); err != nil {
		t.Errorf("one that is merged: %v", err)
	}
	w.set = []string{"pull_request.branch=agent-ci/greet"}
	w.repo.SetPullRequest(1, func(p *forgetest.PullRequest) { p.State, p.Merged = "open", false })
	if _, _, err := w.propose(greet("octo/widgets#8")); err != nil {
		t.Errorf("on a pin: %v", err)
	}
}

func TestRefusesPullRequestOfOtherTask(t *testing.T) {
	own := intake.Task{Branch: "agent-ci/issue-7", Issue: &form.Issue{Repository: "octo/widgets", Number: 7}}
	pull := forge.PullRequest{Number: 1, Head: "agent-ci/issue-7", HeadRepository: "Octo/Widgets"}
	for name, test := range map[string]struct {
		change  func(*forge.PullRequest, *intake.Task)
		refused bool
	}{
		"its own":            {change: func(*forge.PullRequest, *intake.Task) {}},
		"another branch":     {change: func(p *forge.PullRequest, _ *intake.Task) { p.Head = "agent-ci/issue-8" }, refused: true},
		"a branch of a fork": {change: func(p *forge.PullRequest, _ *intake.Task) { p.HeadRepository = "fork/widgets" }, refused: true},
		"another issue": {change: func(_ *forge.PullRequest, t *intake.Task) {
			t.Issue = &form.Issue{Repository: "octo/widgets", Number: 8}
		}, refused: true},
		"no issue":              {change: func(_ *forge.PullRequest, t *intake.Task) { t.Issue = nil }},
		"of another repository": {change: func(_ *forge.PullRequest, t *intake.Task) { t.Issue = &form.Issue{Repository: "octo/other", Number: 8} }},
	} {
		at, task := pull, own
		test.change(&at, &task)
		err := refuseOtherPull("octo/widgets", &at, task)
		must.Same(t, test.refused, err != nil, name, err)
	}
}
