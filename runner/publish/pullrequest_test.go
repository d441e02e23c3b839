package publish

import (
	"net/http"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/recordtest"
	"github.com/agent-ci/agent-ci/runner/record/transcript/body"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

const pullsPath = "/repos/octo/widgets/pulls"

func refusal(message string) forgetest.Reply {
	return forgetest.Reply{Status: http.StatusUnprocessableEntity, Body: `{"message": "Validation Failed", "errors": [{"resource": "PullRequest", "code": "custom", "message": "` + message + `"}]}`}
}

func TestFindsAbsentNames(t *testing.T) {
	t.Parallel()
	must.Same(t, []string{"new"}, forge.MissingNames([]string{"Bug", "new", "help"}, []string{"bug", "HELP", "other"}))
}

func TestWarnsIfDraftsAreUnsupported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.forge.On(http.MethodPost, pullsPath, refusal("Draft pull requests are not supported in this repository"), 1)
	p := w.proposal("hello.txt", "Hello.\n")
	p.Job.PullRequest.Draft = true
	w.publish(w.toForge(), p)
	w.wantWarning("no_drafts")
	must.Same(t, false, w.pull().Draft, "it is a draft")
}

// Another run may open the pull request between the look for one and the opening.
func TestUpdatesPullRequestOfConcurrentRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.forge.On(http.MethodPost, pullsPath, refusal("A pull request already exists for octo:"+taskBranch+"."), 1)
	p := w.proposal("hello.txt", "Hello.\n")
	out, stop := w.refused(w.toForge(), p, "rejected")
	if out.Commit == "" || !strings.Contains(stop.Message, "lists none") {
		t.Errorf("none is listed: %+v: %s", out, stop.Message)
	}
	told := pullText{title: "Theirs", Posts: body.Posts{Body: "Theirs."}}
	must.Do(w.t, w.toForge().createPull(t.Context(), &p, told, &out))
	told.title = "Ours"
	must.Do(w.t, w.toForge().createPull(t.Context(), &p, told, &out))
	must.Same(t, "Ours", w.pull().Title)
	must.Same(t, "updated", out.Operation)
}

// Ticks of the reader's stay, and what a person wrote is only replaced where there
// is more to tell.
func TestKeepsEditedBodyOfUnchangedCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.proposal("hello.txt", "Hello.\n")
	out := w.publish(w.toForge(), p)
	w.repo.SetPullRequest(1, func(p *forgetest.PullRequest) { p.Body = "My own words." })
	out.Unchanged = true
	must.Do(w.t, w.toForge().publishPull(t.Context(), &p, &out))
	must.Same(t, "My own words.", w.pull().Body)
	must.Same(t, "none", out.Operation)
	out.Unchanged = false
	must.Do(w.t, w.toForge().publishPull(t.Context(), &p, &out))
	if pull := w.pull(); !intake.IsFinished(pull.Body, out.Commit) || out.Operation != "updated" {
		t.Errorf("%s: %s", out.Operation, pull.Body)
	}
}

func TestRemovedLabelsStayRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.proposal("hello.txt", "Hello.\n")
	p.Job.PullRequest.Labels, p.Job.PullRequest.Assignees = []string{"bot", "lint"}, []string{"octocat"}
	out := w.publish(w.toForge(), p)
	must.Same(t, []string{"bot", "lint"}, w.pull().Labels)
	w.repo.SetPullRequest(1, func(p *forgetest.PullRequest) { p.Labels, p.Assignees = []string{"lint"}, nil })
	p.Summary = "Said hello again."
	must.Do(w.t, w.toForge().publishPull(t.Context(), &p, &out))
	must.Same(t, "updated", out.Operation)
	must.Same(t, []string{"lint"}, w.pull().Labels)
	must.None(t, w.pull().Assignees, "assignees")
}

func TestSameTextIgnoresLineEnds(t *testing.T) {
	t.Parallel()
	if !forge.SameText("one\r\ntwo\r\n", "one\ntwo") || forge.SameText("one two", "one\ntwo") {
		t.Error("line ends are told apart, or words are not")
	}
}

// A title of somebody else's stays one word of the command that opens the pull request by hand.
func TestManualCommandQuotesTitle(t *testing.T) {
	t.Parallel()
	rec := recordtest.New(t, "")
	f := Forge{Publisher{Project: Project{Repo: named{}}, Record: rec}}
	p := &Proposal{Job: &job.Job{PullRequest: job.PullRequest{Draft: true}}, Base: gitops.Base{Branch: "main"}, Task: intake.Task{Branch: taskBranch}}
	want := `gh pr create --repo octo/widgets --base main --head agent-ci/greet --title 'Say '\''hello'\''' --body-file `
	if got := f.describeManualPull(p, "Say 'hello'"); !strings.Contains(got, want) || !strings.HasSuffix(got, " --draft") {
		t.Error(got)
	}
}
