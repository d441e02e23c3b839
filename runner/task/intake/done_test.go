package intake_test

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

func TestSkipsDoneAndOpenTasks(t *testing.T) {
	const snapshot, base = "5a", "b0"
	tip := func(input string) *forge.Commit {
		return &forge.Commit{SHA: "c1", Parents: []string{base}, Message: "Greet\n\nAgent-CI-Run: r\nAgent-CI-Base: b0\nAgent-CI-Input: " + input + "\n"}
	}
	foreign := tip(snapshot)
	foreign.Parents = []string{"b1"}
	pull := func(state, body string) *forge.PullRequest {
		return &forge.PullRequest{Number: 9, State: state, Body: body}
	}
	finished := intake.FinishedMark("c1")
	for name, c := range map[string]struct {
		event, payload string
		pull           *forge.PullRequest
		tip            *forge.Commit
		ends           string
	}{
		"no pull request":                       {"issues", labeled, nil, nil, ""},
		"an open one":                           {"issues", labeled, pull("open", finished), tip("other"), "skipped/open_pull_request"},
		"an open one, without a branch":         {"issues", labeled, pull("open", ""), nil, "skipped/open_pull_request"},
		"an open one, more is asked":            {"issue_comment", ordered, pull("open", finished), tip("other"), ""},
		"an open one, the same is asked":        {"issue_comment", ordered, pull("open", finished), tip(snapshot), "skipped/same_input"},
		"a closed one":                          {"issues", labeled, pull("closed", finished), tip("other"), ""},
		"a closed one of the same input":        {"issues", labeled, pull("closed", finished), tip(snapshot), "skipped/same_input"},
		"left undone":                           {"issues", labeled, pull("open", intake.UnfinishedMark), tip(snapshot), ""},
		"finished for another commit":           {"issues", labeled, pull("open", intake.FinishedMark("c0")), tip(snapshot), ""},
		"not all of its comments":               {"issues", labeled, pull("open", intake.UncommentedMark), tip(snapshot), "skipped/open_pull_request"},
		"left undone, a person went on with it": {"issues", labeled, pull("open", intake.UnfinishedMark), foreign, "skipped/open_pull_request"},
	} {
		on := &server{ofTask: c.pull, tip: c.tip}
		s := sourceOf(t, on, trusting(), c.event, c.payload)
		task := intake.Task{Branch: "agent-ci/issue-7", Task: transcript.Task{InputDigest: snapshot}}
		must.Same(t, c.ends, outcometest.End(s.CheckNotDone(t.Context(), task, "main", base)), name)
		want := []string{"pull of agent-ci/issue-7 into main", "branch agent-ci/issue-7"}
		if c.pull == nil {
			want = want[:1]
		}
		must.Same(t, want, on.calls, name)
	}
}

// TestOmitsNeedlessDoneCheck takes what a person asks for as not done.
func TestOmitsNeedlessDoneCheck(t *testing.T) {
	for name, change := range map[string]func(*intake.Source){
		"by a person":   func(s *intake.Source) { s.Request = nil },
		"no token":      func(s *intake.Source) { s.Event.HasToken = false },
		"no repository": func(s *intake.Source) { s.Target = s.Forge.Repository("") },
	} {
		on := &server{ofTask: &forge.PullRequest{State: "open"}}
		s := sourceOf(t, on, trusting(), "issues", labeled)
		change(s)
		if err := s.CheckNotDone(t.Context(), intake.Task{}, "main", "b0"); err != nil || on.calls != nil {
			t.Errorf("%s: %v, %v", name, on.calls, err)
		}
	}
}

// TestSkipsFruitlessInput does not work twice on what came to nothing on the same base.
func TestSkipsFruitlessInput(t *testing.T) {
	progress := func(snapshot string) []forge.Comment {
		c := said("", "ci[bot]", intake.ProgressMark+"It ended."+intake.FruitlessMark(snapshot, "b0")+"\n")
		c.Author.Bot = true
		return []forge.Comment{c}
	}
	theirs := progress("5a")
	theirs[0].Author = forge.User{Login: "octo"}
	for name, c := range map[string]struct {
		task intake.Task
		base string
		ends string
	}{
		"the same":             {intake.Task{Task: transcript.Task{InputDigest: "5a"}, Progress: intake.Progress{ProgressLike: progress("5a")}}, "b0", "skipped/same_input"},
		"on another base":      {intake.Task{Task: transcript.Task{InputDigest: "5a"}, Progress: intake.Progress{ProgressLike: progress("5a")}}, "b1", ""},
		"another input":        {intake.Task{Task: transcript.Task{InputDigest: "5b"}, Progress: intake.Progress{ProgressLike: progress("5a")}}, "b0", ""},
		"as a person says":     {intake.Task{Task: transcript.Task{InputDigest: "5a"}, Progress: intake.Progress{ProgressLike: theirs}}, "b0", ""},
		"on a pull request":    {intake.Task{Task: transcript.Task{InputDigest: "5a"}, Progress: intake.Progress{ProgressLike: progress("5a")}, Pull: ofRun}, "b0", ""},
		"of a task of its own": {intake.Task{Progress: intake.Progress{ProgressLike: progress("")}}, "b0", ""},
	} {
		s := sourceOf(t, &server{}, trusting(), "issues", labeled)
		must.Same(t, c.ends, outcometest.End(s.CheckNotDone(t.Context(), c.task, "main", c.base)), name)
	}
}

// TestSkipExplainsNextStep sends people to where words ask for more: to the pull request while it is
// open, since words on the issue start afresh.
func TestSkipExplainsNextStep(t *testing.T) {
	snapshot := "5a"
	merged := &forge.PullRequest{Number: 9, State: "closed", Merged: true}
	made := &forge.Commit{Message: "x\n\nAgent-CI-Run: r\n" + intake.InputTrailer + ": " + snapshot}
	for _, c := range []struct {
		command string
		pull    *forge.PullRequest
		want    string
	}{
		{"/agent-ci", &forge.PullRequest{Number: 9, State: "open"}, "; comment on pull request #9 what more is to be done, after /agent-ci."},
		{"", &forge.PullRequest{Number: 9, State: "open"}, "; change the issue, or merge or close pull request #9 first."},
		{"/agent-ci", merged, "; change the issue, or comment on it what more is to be done, after /agent-ci."},
		{"", merged, "; change the issue first."},
	} {
		j := trusting()
		j.Trigger.Command = c.command
		s := sourceOf(t, &server{ofTask: c.pull, tip: made}, j, "issues", labeled)
		if err := s.CheckNotDone(t.Context(), intake.Task{Task: transcript.Task{InputDigest: snapshot}}, "main", "b0"); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%v\nwant %s", err, c.want)
		}
	}
}

func TestFitsBase(t *testing.T) {
	onPull := intake.Task{Pull: &forge.PullRequest{Number: 9, Base: "next"}}
	for name, c := range map[string]struct {
		task   intake.Task
		branch string
		ends   string
	}{
		"no pull request": {intake.Task{}, "main", ""},
		"its base":        {onPull, "next", ""},
		"another":         {onPull, "main", "invalid_input/base"},
		"none":            {onPull, "", "invalid_input/base"},
	} {
		must.Same(t, c.ends, outcometest.End(c.task.RequireBaseBranch(c.branch, c.branch)), name)
	}
}
