package publish

import (
	"net/http"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

// personsPull is a pull request on a person's branch.
var personsPull = &forge.PullRequest{Head: "polish"}

// A run that comes to no change names the open pull request of its task.
func TestNamesOpenPullRequestOfTask(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish(w.toForge(), w.proposal("hello.txt", "Hello.\n"))
	w.onForge(taskBranch, "theirs.txt", "Theirs.\n", "By hand") // a person's commit is last
	for name, test := range map[string]struct {
		change func(p *Proposal)
		silent bool // the pull request is not named
	}{
		"nothing was left to do":  {change: func(*Proposal) {}},
		"the task was a question": {change: func(p *Proposal) { p.Job.Task.Expects = "answer" }, silent: true},
		"the agent was stopped":   {change: func(p *Proposal) { p.Stopped = outcome.Stopf(outcome.BudgetExceeded, "tokens", "Out.") }, silent: true},
		"there is no branch":      {change: func(p *Proposal) { p.Task.Branch = "" }, silent: true},
		"it is a person's":        {change: func(p *Proposal) { p.Task.Pull = personsPull }, silent: true},
		"it cannot be looked up": {change: func(*Proposal) {
			w.forge.On(http.MethodGet, pullsPath, forgetest.Reply{Status: http.StatusForbidden, Body: `{"message": "no"}`}, 1)
		}, silent: true},
	} {
		p := Proposal{Job: w.job(), Base: w.Workspace.Base(), Task: intake.Task{Branch: taskBranch}}
		test.change(&p)
		pull := w.toForge().findOpenPullOfTask(t.Context(), &p)
		must.Same(t, test.silent, pull == nil, name, pull)
	}
}
