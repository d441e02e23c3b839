package intake_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/secrets"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// TestReadPrompt reads a task of the job's own.
func TestReadPrompt(t *testing.T) {
	s := sourceOf(t, &server{}, &job.Job{Name: "greeter", Task: job.Task{Prompt: "Greet with hunter2hunter2."}}, "", "")
	s.Record = record.New("", []secrets.Value{{Name: "TOKEN", Secret: "hunter2hunter2"}})
	task, err := s.Read(t.Context(), nil)
	if err != nil || task.Source != "prompt" || task.Name != "prompt" || strings.Contains(task.Text, "hunter2") {
		t.Errorf("%+v, %v", task, err)
	}
	if task.Key != "greeter" || task.Branch != "agent-ci/greeter" || task.ProgressOn != 0 || task.InputDigest != "" {
		t.Errorf("%+v", task)
	}
	s.JobFile, s.Job.Task.Title, s.Job.PullRequest.Branch = "fix.yml", "Greetings", "greet"
	task, err = s.Read(t.Context(), nil)
	if err != nil || task.Source != "job" || task.Name != "job fix.yml" || task.Title != "Greetings" || task.Branch != "greet" {
		t.Errorf("%+v, %v", task, err)
	}
	unread := errors.New("no such file")
	s.JobFiles = &besideJob{job: s.Job, unread: unread}
	must.Is(t, unread, must.Err(s.Read(t.Context(), nil)))
}

// TestReadNamedIssue reads an issue that the job names, by itself or in a workflow
// that somebody's event on this issue started.
func TestReadNamedIssue(t *testing.T) {
	for name, c := range map[string]struct {
		event, payload string
		text           string
		progressOn     int
		askedAt        time.Time
		warns          []string
	}{
		"by itself":            {"", "", "Say hello.", 0, time.Time{}, nil},
		"on its label":         {"issues", labeled, "Say hello.", 7, asked, nil},
		"on a comment":         {"issue_comment", ordered, "Say hello.", 7, asked, nil},
		"on another's label":   {"issues", strings.ReplaceAll(labeled, `"number": 7`, `"number": 6`), "Say hello.", 0, time.Time{}, nil},
		"edited after a label": {"issues", strings.ReplaceAll(labeled, "Say hello.", "Say nothing."), "Say nothing.", 7, asked, []string{"edited_after_trigger"}},
	} {
		s := sourceOf(t, &server{issues: with()}, named("trusted"), c.event, c.payload)
		task := read(t, s, nil)
		if task.Source != "issue" || task.Name != "issue o/r#7" || task.URL != "https://forge/o/r/issues/7" || task.Issue.String() != "o/r#7" || task.Author.Login != "author" {
			t.Errorf("%s: %+v", name, task)
		}
		if task.Text != c.text || task.Title != "Greet" || task.ProgressOn != c.progressOn || !task.AskedAt.Equal(c.askedAt) || task.Trigger != "" {
			t.Errorf("%s: %+v", name, task)
		}
		must.Same(t, c.warns, codesOf(s.Record.Warnings()), name)
	}
}

func TestRefusesUnusableIssues(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*server, *job.Job)
		ends   string
	}{
		"none":           {func(on *server, _ *job.Job) { on.issues = nil }, "invalid_input/issue_not_found"},
		"a pull request": {func(on *server, _ *job.Job) { on.issues["o/r#7"].PullRequest = true }, "invalid_input/issue"},
		"closed":         {func(on *server, _ *job.Job) { on.issues["o/r#7"].State = "closed" }, "skipped/issue_closed"},
		"a server's failure": {func(on *server, _ *job.Job) {
			on.fails = map[string]error{"issue o/r#7": &forge.Error{Kind: forge.RateLimited, Message: "too many calls"}}
		}, "forge_failed/rate_limited"},
		"elsewhere":  {func(_ *server, j *job.Job) { j.Task.Issue = "else/r#7" }, "invalid_input/issue_not_found"},
		"not one":    {func(_ *server, j *job.Job) { j.Task.Issue = "o/r#" }, ""},
		"of no name": {nil, "invalid_input/no_repository"},
	} {
		on, j := &server{issues: with()}, named("trusted")
		s := sourceOf(t, on, j, "", "")
		if c.change == nil {
			s.Target = on.Repository("")
		} else {
			c.change(on, j)
		}
		_, err := s.Read(t.Context(), nil)
		if err == nil || c.ends != "" && outcometest.End(err) != c.ends {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReadRequest reads what an event brings as the task.
func TestReadRequest(t *testing.T) {
	dispatched := `{"inputs": {"prompt": "Greet <b>them</b>.<!-- obey -->"}, ` + octocat + `}`
	for name, c := range map[string]struct {
		event, payload string
		want           []string
		key, name      string
		progressOn     int
		trigger        string
		warns          []string
	}{
		"a label":   {"issues", labeled, nil, "greeter-issue-7", "issue o/r#7", 7, "label agent-ci", nil},
		"a command": {"issue_comment", ordered, []string{"issue author", "request octocat"}, "greeter-issue-7", "issue o/r#7", 7, "comment", nil},
		"a prompt":  {"workflow_dispatch", dispatched, []string{"request "}, "greeter", "event workflow_dispatch", 0, "workflow_dispatch", []string{"hidden_text"}},
	} {
		j := trusting()
		j.Name = "greeter"
		s := sourceOf(t, &server{issues: with(), roles: map[string]string{"octocat": "write"}}, j, c.event, c.payload)
		task := read(t, s, nil)
		if task.Source != "event" || task.Key != c.key || task.Branch != "agent-ci/"+c.key || task.Name != c.name || task.ProgressOn != c.progressOn || task.Trigger != c.trigger {
			t.Errorf("%s: %+v", name, task)
		}
		must.Same(t, c.want, authorsOf(task.Text), name)
		must.Same(t, 64, len(task.InputDigest), name)
		must.Same(t, c.warns, codesOf(s.Record.Warnings()), name)
	}
}

// TestSnapshotIdentifiesInput takes care that another input has another digest, and the same the
// same: whether a task is done already hangs on it.
func TestSnapshotIdentifiesInput(t *testing.T) {
	seen := map[string]string{}
	for name, issues := range map[string]map[string]*forge.Issue{
		"plain": with(), "with a comment": with(said("OWNER", "octo", "Yes.")), "by another": with(said("OWNER", "mona", "Yes.")),
		"two in one": with(said("OWNER", "octo", "Yes."), said("OWNER", "octo", "Yes.")),
	} {
		for range 2 {
			s := sourceOf(t, &server{issues: issues}, named("all"), "", "")
			task := read(t, s, nil)
			if is := seen[task.InputDigest]; is != "" && is != name {
				t.Errorf("%s has the digest of %s", name, is)
			}
			seen[task.InputDigest] = name
		}
	}
	must.Same(t, 4, len(seen), "the same input has several digests", seen)
}
