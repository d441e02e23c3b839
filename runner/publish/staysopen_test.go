package publish

import (
	"net/http"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/intake"
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

// A run that comes to no change closes no pull request, and says nothing on it.
func TestNoChangeKeepsPullRequestOpen(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(w *world, p *Proposal)
		silent bool // the pull request is not named either
	}{
		"nothing was left to do":    {change: func(*world, *Proposal) {}},
		"a person's commit is last": {change: func(w *world, _ *Proposal) { w.onForge(taskBranch, "theirs.txt", "Theirs.\n", "By hand") }},
		"the task was a question":   {change: func(_ *world, p *Proposal) { p.Job.Task.Expects = "answer" }, silent: true},
		"the agent was stopped":     {change: func(_ *world, p *Proposal) { p.Stopped = outcome.Stopf(outcome.BudgetExceeded, "tokens", "Out.") }, silent: true},
		"there is no branch":        {change: func(_ *world, p *Proposal) { p.Task.Branch = "" }, silent: true},
		"it is a person's":          {change: func(_ *world, p *Proposal) { p.Task.Mode = intake.Join }, silent: true},
		"it cannot be looked up": {change: func(w *world, _ *Proposal) {
			w.forge.On(http.MethodGet, pullsPath, forgetest.Reply{Status: http.StatusForbidden, Body: `{"message": "no"}`}, 1)
		}, silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.publish(w.toForge(), w.proposal("hello.txt", "Hello.\n"))
			p := w.nothing()
			test.change(w, &p)
			out := w.publish(w.toForge(), p)
			if w.pull().State != "open" || len(w.repo.Comments(1)) > 0 || out.Pull != nil {
				t.Errorf("%+v: %+v", out, w.pull())
			}
			if silent := out.OpenPullOfTask == nil; silent != test.silent {
				t.Errorf("named: %+v", out.OpenPullOfTask)
			}
		})
	}
}
