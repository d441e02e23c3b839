package actions_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/task/actions"
)

var triggers = actions.Triggers{Labels: []string{"agent-ci"}, Assignees: []string{"robot"}, Command: "/agent-ci", BranchPrefix: "agent-ci/"}

func read(t *testing.T, name, payload string) *actions.Event {
	t.Helper()
	path := filepath.Join(t.TempDir(), "event.json")
	must.Do(t, os.WriteFile(path, []byte(payload), 0o600))
	return must.Get(actions.ReadEvent(t.Context(), name, path))(t)
}

const (
	anIssue = `"issue": {"number": 7, "title": "Greet", "body": null, "state": "open", "updated_at": "2026-01-02T03:04:05Z", "user": {"login": "stranger"}}`
	aPull   = `"pull_request": {"number": 9, "title": "T", "head": {"ref": "agent-ci/issue-7", "sha": "c0", "repo": {"full_name": "o/r"}}, "base": {"ref": "main", "repo": {"full_name": "o/r"}}}`
	sender  = `"sender": {"login": "octocat", "id": 1, "type": "User"}`
)

// wanted is what a request is compared by.
type wanted struct {
	Trigger, Actor, Words, Prompt, Typed string
	Number                               int
	OnPull, Commanded                    bool
}

func TestRecognisesRequestsInEvents(t *testing.T) {
	comment := func(body string) string {
		return `"comment": {"id": 3, "body": "` + body + `", "created_at": "2026-01-02T03:04:06Z", "user": {"login": "octocat"}}`
	}
	review := func(state, body string) string {
		return `"review": {"id": 4, "body": "` + body + `", "state": "` + state + `", "submitted_at": "2026-01-02T03:04:06Z", "user": {"login": "octocat"}}`
	}
	for name, c := range map[string]struct {
		event, payload string
		want           wanted
		why            string // part of why it asks for nothing
	}{
		"label":                {"issues", `{"action": "labeled", "label": {"name": "Agent-CI"}, ` + anIssue + `, ` + sender + `}`, wanted{Trigger: "label Agent-CI", Actor: "octocat", Number: 7}, ""},
		"another label":        {"issues", `{"action": "labeled", "label": {"name": "bug"}, ` + anIssue + `, ` + sender + `}`, wanted{}, `"bug" is none of`},
		"assignment":           {"issues", `{"action": "assigned", "assignee": {"login": "robot"}, ` + anIssue + `, ` + sender + `}`, wanted{Trigger: "assignment to robot", Actor: "octocat", Number: 7}, ""},
		"another assignee":     {"issues", `{"action": "assigned", "assignee": {"login": "hubot"}, ` + anIssue + `, ` + sender + `}`, wanted{}, "hubot is none of"},
		"edited issue":         {"issues", `{"action": "edited", ` + anIssue + `, ` + sender + `}`, wanted{}, "edited asks for nothing"},
		"no issue":             {"issues", `{"action": "labeled"}`, wanted{}, "names no issue"},
		"command":              {"issue_comment", `{"action": "created", ` + anIssue + `, ` + comment(`/agent-ci and test it`) + `}`, wanted{Trigger: "comment", Actor: "octocat", Number: 7, Words: "and test it", Commanded: true}, ""},
		"command alone":        {"issue_comment", `{"action": "created", ` + anIssue + `, ` + comment(`\n/agent-ci\r\n`) + `}`, wanted{Trigger: "comment", Actor: "octocat", Number: 7, Commanded: true}, ""},
		"command on a pull":    {"issue_comment", `{"action": "created", ` + strings.Replace(anIssue, `"state"`, `"pull_request": {"url": "u"}, "state"`, 1) + `, ` + comment(`/agent-ci`) + `}`, wanted{Trigger: "comment", Actor: "octocat", Number: 7, OnPull: true, Commanded: true}, ""},
		"another command":      {"issue_comment", `{"action": "created", ` + anIssue + `, ` + comment(`/agent-cinema`) + `}`, wanted{}, "does not begin with"},
		"quoted command":       {"issue_comment", `{"action": "created", ` + anIssue + `, ` + comment(`> /agent-ci`) + `}`, wanted{}, "does not begin with"},
		"edited comment":       {"issue_comment", `{"action": "edited", ` + anIssue + `, ` + comment(`/agent-ci`) + `}`, wanted{}, "edited asks for nothing"},
		"changes requested":    {"pull_request_review", `{"action": "submitted", ` + aPull + `, ` + review("changes_requested", "Test it.") + `}`, wanted{Trigger: "review", Actor: "octocat", Number: 9, Words: "Test it.", OnPull: true, Commanded: true}, ""},
		"of a person's branch": {"pull_request_review", `{"action": "submitted", ` + strings.Replace(aPull, "agent-ci/", "feature/", 1) + `, ` + review("changes_requested", "Test it.") + `}`, wanted{}, "neither begins with"},
		"approval":             {"pull_request_review", `{"action": "submitted", ` + aPull + `, ` + review("approved", "Fine.") + `}`, wanted{}, "neither begins with"},
		"dismissed review":     {"pull_request_review", `{"action": "dismissed", ` + aPull + `, ` + review("dismissed", "/agent-ci") + `}`, wanted{}, "dismissed asks for nothing"},
		"review comment":       {"pull_request_review_comment", `{"action": "created", ` + aPull + `, ` + comment(`/agent-ci rename`) + `}`, wanted{Trigger: "review comment", Actor: "octocat", Number: 9, Words: "rename", OnPull: true, Commanded: true}, ""},
		"dispatched issue":     {"workflow_dispatch", `{"inputs": {"issue": "#7"}, ` + sender + `}`, wanted{Trigger: "workflow_dispatch", Typed: "#7"}, ""},
		"dispatched prompt":    {"repository_dispatch", `{"action": "go", "client_payload": {"prompt": "Fix it"}, ` + sender + `}`, wanted{Trigger: "repository_dispatch", Prompt: "Fix it"}, ""},
		"number as a number":   {"repository_dispatch", `{"client_payload": {"issue": 7}}`, wanted{Trigger: "repository_dispatch", Typed: "7"}, ""},
		"two tasks":            {"workflow_dispatch", `{"inputs": {"issue": "7", "prompt": "Fix it"}}`, wanted{}, "either issue or prompt"},
		"no task":              {"workflow_dispatch", `{"inputs": null}`, wanted{}, "either issue or prompt"},
		"schedule":             {"schedule", `{"schedule": "0 3 * * *"}`, wanted{}, "has no task"},
		"push":                 {"push", `{}`, wanted{}, "the event push has no task"},
	} {
		t.Run(name, func(t *testing.T) {
			request, why := read(t, c.event, c.payload).Request(triggers)
			if request == nil {
				if c.why == "" || !strings.Contains(why, c.why) {
					t.Errorf("asks for nothing since %q, want %q", why, c.why)
				}
				return
			}
			got := wanted{request.Trigger, request.Actor.Login, request.Words, request.Prompt, request.TypedIssue, request.Number, request.OnPull, request.Commanded}
			must.Same(t, c.want, got)
			if timed := request.Actor.Login != ""; timed == request.RequestedAt.IsZero() {
				t.Errorf("asked by %q at %v", request.Actor.Login, request.RequestedAt)
			}
		})
	}
}

func TestReportsMissingAndBrokenEvents(t *testing.T) {
	must.Is(t, actions.ErrNoEvent, must.Err(actions.ReadEvent(t.Context(), "", "")))
	must.Is(t, os.ErrNotExist, must.Err(actions.ReadEvent(t.Context(), "issues", filepath.Join(t.TempDir(), "gone"))))
	path := filepath.Join(t.TempDir(), "event.json")
	must.Do(t, os.WriteFile(path, []byte(`{"action": 7`), 0o600))
	must.Fail(t, "", must.Err(actions.ReadEvent(t.Context(), "issues", path)), "half an event is read")
}

// The shapes are those of GitHub's description of its webhooks, cut to a few fields that
// are not used beside those that are.
func TestReadsWorkflowRunsAndCheckSuites(t *testing.T) {
	ran := read(t, "workflow_run", `{"action": "completed", "workflow": {"id": 5, "name": "CI"}, "workflow_run": {
		"id": 30433642, "name": "CI", "node_id": "x", "check_suite_id": 414944374, "head_branch": "agent-ci/issue-7", "head_sha": "009b8a3a9ccbb128af87f9b1c0f4c62e8a304f6d",
		"path": ".github/workflows/ci.yml", "run_number": 562, "run_attempt": 2, "event": "pull_request", "status": "completed", "conclusion": "failure",
		"pull_requests": [{"id": 1, "number": 9, "url": "u", "head": {"ref": "agent-ci/issue-7", "sha": "c0", "repo": {"id": 1, "url": "u", "name": "r"}}}],
		"head_repository": {"id": 217723378, "full_name": "o/r", "fork": false}, "repository": {"id": 217723378, "full_name": "o/r"}}, `+sender+`}`)
	wantRun := &actions.Checks{
		Name: "CI", Conclusion: "failure", HeadSHA: "009b8a3a9ccbb128af87f9b1c0f4c62e8a304f6d", HeadRepository: &actions.Repository{FullName: "o/r"},
	}
	must.Same(t, wantRun, ran.WorkflowRun)
	must.Same(t, "completed", ran.Action)
	must.Same(t, nil, ran.CheckSuite)
	suite := read(t, "check_suite", `{"action": "completed", "check_suite": {"id": 5, "node_id": "x", "head_branch": null, "head_sha": "c0", "status": "completed",
		"conclusion": "timed_out", "before": null, "after": null, "pull_requests": [], "app": {"id": 29310, "slug": "octoapp", "name": "Octo App"}, "latest_check_runs_count": 1}, `+sender+`}`)
	wantSuite := &actions.Checks{Conclusion: "timed_out", HeadSHA: "c0"}
	must.Same(t, wantSuite, suite.CheckSuite)
	must.Same(t, nil, suite.WorkflowRun)
	if running := read(t, "workflow_run", `{"action": "requested", "workflow_run": {"id": 1, "conclusion": null, "head_repository": null, "pull_requests": []}}`); running.WorkflowRun.Conclusion != "" || running.WorkflowRun.HeadRepository.Name() != "" {
		t.Errorf("%+v", running.WorkflowRun)
	}
}
