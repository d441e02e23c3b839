package runner

import (
	"testing"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/task/actions"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

// named is a repository that is known by its name alone.
type named struct {
	forge.Repository
	name string
}

func (n named) Name() string { return n.name }

// The base of an event is a branch of the repository that the event is of.
func TestIgnoresBaseOfEventInOtherRepository(t *testing.T) {
	event := intake.Event{
		Event:        &actions.Event{PullRequest: &actions.PullRequest{Base: actions.PullBranch{Ref: "next"}}},
		Surroundings: intake.Surroundings{InActions: true, Repository: "octo/widgets"},
	}
	pull := &forge.PullRequest{Base: "main"}
	for name, c := range map[string]struct {
		of   string
		task intake.Task
		want string
	}{
		"here":           {of: "Octo/widgets", want: "next"},
		"elsewhere":      {of: "octo/gadgets"},
		"a pull request": {"octo/gadgets", intake.Task{Mode: intake.Join, Pull: pull}, "main"},
	} {
		if got := baseOf(event, assignment{project: publish.Project{Repo: named{name: c.of}}, task: c.task}); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
