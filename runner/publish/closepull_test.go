package publish

import (
	"net/http"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/runner/outcome"
)

// nothing is the proposal of a later run that found nothing to change.
func (w *world) nothing() Proposal {
	w.t.Helper()
	w.git(w.dir, "checkout", "--quiet", "main")
	w.run("20260301T100000Z-00000002")
	p := w.proposal("README.md", "one\ntwo\nthree\nfour\nfive\nsix\nseven\n")
	if !p.Change.Empty() {
		w.t.Fatalf("there is a change: %+v", p.Change.Files)
	}
	return p
}

func TestClosingWhatNothingIsLeftOf(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish(w.toForge(), w.proposal("hello.txt", "Hello.\n"))
	out := w.publish(w.toForge(), w.nothing())
	pull := w.pull()
	if pull.State != "closed" || !strings.HasPrefix(pull.Body, closedMark) || out.Operation != "closed" || out.InBase {
		t.Errorf("%+v: %+v", out, pull)
	}
	if said := w.repo.Comments(1); len(said) != 1 || !strings.Contains(said[0].Body, "(`"+w.Record.ID+"`) ended without a change on `main`") {
		t.Errorf("comments: %+v", said)
	}
	ready := w.toForge()
	if err := ready.Ready(t.Context(), taskBranch, out.Base); err != nil {
		t.Errorf("what a run closed keeps the next from its work: %v", err)
	}
	w.repo.SetPullRequest(1, func(p *forgetest.PullRequest) { p.State = "open" })
	p := w.nothing() // as a run that was killed between the comment and the closing
	w.repo.SetPullRequest(1, func(p *forgetest.PullRequest) { p.Body = strings.SplitN(p.Body, "\n", 2)[1] })
	w.publish(w.toForge(), p)
	if said := w.repo.Comments(1); len(said) != 1 {
		t.Errorf("it was said again: %+v", said)
	}
}

func TestPullRequestsThatAreNotClosed(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *world, p *Proposal){
		"the task was a question":   func(_ *world, p *Proposal) { p.Job.Task.Expects = "answer" },
		"the agent was stopped":     func(_ *world, p *Proposal) { p.Stopped = outcome.Stopf(outcome.BudgetExceeded, "tokens", "Out.") },
		"there is no branch":        func(_ *world, p *Proposal) { p.Task.Branch = "" },
		"a person's commit is last": func(w *world, _ *Proposal) { w.onForge(taskBranch, "theirs.txt", "Theirs.\n", "By hand") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.publish(w.toForge(), w.proposal("hello.txt", "Hello.\n"))
			p := w.nothing()
			change(w, &p)
			if out := w.publish(w.toForge(), p); out.Pull != nil || w.pull().State != "open" {
				t.Errorf("%+v: %+v", out, w.pull())
			}
		})
	}
}

func TestClosingThatFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish(w.toForge(), w.proposal("hello.txt", "Hello.\n"))
	p := w.nothing()
	w.repo.SetPullRequest(1, func(p *forgetest.PullRequest) { p.Base = "next" })
	w.onForge("next", "next.txt", "Next.\n", "Next")
	_, _ = w.refused(w.toForge(), p, "other_base")
	w.repo.SetPullRequest(1, func(p *forgetest.PullRequest) { p.Base = "main" })
	no := forgetest.Reply{Status: http.StatusForbidden, Body: `{"message": "no"}`}
	w.forge.On(http.MethodPost, "/repos/octo/widgets/issues/1/comments", no, 1)
	w.forge.On(http.MethodPatch, pullsPath+"/1", no, 1)
	if out, _ := w.refused(w.toForge(), p, "forbidden"); out.Pull != nil {
		t.Errorf("it is told as closed: %+v", out)
	}
	w.wantWarning("pull_request_comment")
	if out := w.publish(w.toLocal(), p); out.Pull != nil {
		t.Errorf("here: %+v", out)
	}
}
