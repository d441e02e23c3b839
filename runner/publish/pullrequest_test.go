package publish

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript/body"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

const pullsPath = "/repos/octo/widgets/pulls"

func refusal(message string) forgetest.Reply {
	return forgetest.Reply{Status: http.StatusUnprocessableEntity, Body: `{"message": "Validation Failed", "errors": [{"resource": "PullRequest", "code": "custom", "message": "` + message + `"}]}`}
}

func TestFindsAbsentNames(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff([]string{"new"}, absentNames([]string{"Bug", "new", "help"}, []string{"bug", "HELP", "other"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWarnsIfDraftsAreUnsupported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.forge.On(http.MethodPost, pullsPath, refusal("Draft pull requests are not supported in this repository"), 1)
	p := w.proposal("hello.txt", "Hello.\n")
	p.Job.PullRequest.Draft = true
	w.publish(w.toForge(), p)
	w.wantWarning("no_drafts")
	if w.pull().Draft {
		t.Error("it is a draft")
	}
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
	told := description{title: "Theirs", Posts: body.Posts{Body: "Theirs."}}
	w.must(w.toForge().createPull(t.Context(), &p, told, &out))
	told.title = "Ours"
	w.must(w.toForge().createPull(t.Context(), &p, told, &out))
	if pull := w.pull(); pull.Title != "Ours" || out.Operation != "updated" {
		t.Errorf("%s: %+v", out.Operation, pull)
	}
}

// A title of somebody else's stays one word of the command that opens the pull request by hand.
func TestForbiddenPullRequestOffersCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.forge.On(http.MethodPost, pullsPath, forgetest.Reply{Status: http.StatusForbidden, Body: `{"message": "Resource not accessible by integration"}`}, 1)
	p := w.proposal("hello.txt", "Hello.\n")
	p.Job.PullRequest.Title, p.Job.PullRequest.Draft = "Say 'hello'", true
	want := "gh pr create --repo octo/widgets --base main --head agent-ci/greet --title 'Say '\\''hello'\\''' --body-file "
	if out, stop := w.refused(w.toForge(), p, "forbidden"); out.Remote == "" || out.Pull != nil || !strings.Contains(stop.Message, want) || !strings.HasSuffix(stop.Message, " --draft") {
		t.Errorf("%+v: %s", out, stop.Message)
	}
}

// A draft of a run becomes ready with the first run that has no reason for it; one
// of a person's stays.
func TestDraftsBecomeReady(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		person, fails bool
		draft         bool
	}{
		"of a run":       {},
		"of a person":    {person: true, draft: true},
		"it can't be so": {fails: true, draft: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			p := w.proposal("hello.txt", "Hello.\n")
			p.Stopped = outcome.Stopf(outcome.BudgetExceeded, "tokens", "Out of tokens.")
			out := w.publish(w.toForge(), p)
			if test.person {
				w.repo.SetPullRequest(1, func(p *forgetest.PullRequest) { p.Body = strings.TrimPrefix(p.Body, draftMark) })
			}
			if test.fails {
				w.forge.On(http.MethodPost, "/api/graphql", forgetest.Reply{Status: http.StatusForbidden, Body: `{"message": "no"}`}, 9)
			}
			p.Stopped, out.Unchanged = nil, true
			w.must(w.toForge().publishPull(t.Context(), &p, &out))
			pull := w.pull()
			if pull.Draft != test.draft || strings.HasPrefix(pull.Body, draftMark) != test.fails {
				t.Errorf("draft %v:\n%s", pull.Draft, pull.Body)
			}
			if finished := intake.IsFinished(pull.Body, out.Commit); finished == test.fails {
				t.Errorf("finished: %v", finished)
			}
		})
	}
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
	w.must(w.toForge().publishPull(t.Context(), &p, &out))
	if pull := w.pull(); pull.Body != "My own words." || out.Operation != "none" {
		t.Errorf("%s: %s", out.Operation, pull.Body)
	}
	out.Unchanged = false
	w.must(w.toForge().publishPull(t.Context(), &p, &out))
	if pull := w.pull(); !intake.IsFinished(pull.Body, out.Commit) || out.Operation != "updated" {
		t.Errorf("%s: %s", out.Operation, pull.Body)
	}
}

func TestSameTextIgnoresLineEnds(t *testing.T) {
	t.Parallel()
	if !sameText("one\r\ntwo\r\n", "one\ntwo") || sameText("one two", "one\ntwo") {
		t.Error("line ends are told apart, or words are not")
	}
}

// bodies are the comments that a transcript goes on in.
func bodies(texts ...string) []string {
	for i := range texts {
		texts[i] = body.CommentMark + "\n" + texts[i]
	}
	return texts
}

func TestReplacesOwnComments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.proposal("hello.txt", "Hello.\n")
	out := w.publish(w.toForge(), p)
	out.Operation = "updated" // as by a later run
	put := func(texts ...string) {
		told := description{title: "T", Posts: body.Posts{Body: intake.FinishedMark(out.Commit), Comments: bodies(texts...)}}
		w.toForge().putComments(t.Context(), &p, told, &out)
	}
	want := func(texts ...string) {
		t.Helper()
		if diff := cmp.Diff(bodies(texts...), w.commentsOf(1)); diff != "" {
			t.Errorf("comments (-want +got):\n%s", diff)
		}
	}
	put("one", "two", "three")
	want("one", "two", "three")
	put("one", "other")
	want("one", "other")
	w.repo.AddComment(1, forgetest.Comment{Author: forgetest.User{Login: "stranger"}, Body: bodies("forged")[0]})
	put("one")
	want("one", "forged")
}
