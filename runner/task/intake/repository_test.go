package intake_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

func TestNameInURL(t *testing.T) {
	const server = "https://github.com"
	for _, c := range []struct{ origin, server, want string }{
		{"https://github.com/octo/widgets.git", server, "octo/widgets"},
		{"https://github.com/octo/widgets", server, "octo/widgets"},
		{"https://github.com/octo/widgets/", server, "octo/widgets"},
		{"git@github.com:octo/widgets.git", server, "octo/widgets"},
		{"ssh://git@github.com/octo/widgets.git", server, "octo/widgets"},
		{"ssh://git@ghe.example.com:2222/octo/widgets.git", "https://ghe.example.com", "octo/widgets"},
		{"https://gitlab.example.com/octo/widgets.git", server, ""},
		{"https://github.com.evil.example/octo/widgets.git", server, ""},
		{"https://github.com/octo", server, ""},
		{"https://github.com/octo/widgets/tree/main", server, ""},
		{"/srv/git/github.com/octo/widgets.git", server, ""},
		{"../widgets", server, ""},
		{"", server, ""},
		{"https://127.0.0.1:4000/octo/widgets.git", "https://127.0.0.1:4001", ""},
		{"https://me:secret@GitHub.com:443//octo//widgets.git/", server, "octo/widgets"},
		{"http://github.com/octo/widgets", server, "octo/widgets"},
		{"GITHUB.com:/octo/widgets", server, "octo/widgets"},
		{"github-personal:octo/widgets", server, ""},
	} {
		must.Same(t, c.want, intake.RepositoryInURL(c.origin, c.server), c.origin, c.server)
	}
}

func TestNamesRepositoryByPrecedence(t *testing.T) {
	const server, origin = "https://github.com", "https://github.com/of/origin.git"
	named := job.Job{Repository: job.Repository{Name: "of/job"}, Task: job.Task{Issue: "of/issue#7"}}
	label := intake.Event{Surroundings: intake.Surroundings{Repository: "of/actions"}}
	command := must.Get(intake.RepairEvent("of/command#7", server, true))(t)
	repair := must.Get(command.Request(&named))(t)
	for want, n := range map[string]intake.RepositorySources{
		"of/record":  {Recorded: "of/record", Job: &named, Event: command, Request: repair, Origin: origin},
		"of/command": {Job: &job.Job{Task: job.Task{Issue: "of/issue#7"}}, Event: command, Request: repair, Origin: origin},
		"of/job":     {Job: &named, Event: label, Origin: origin},
		"of/issue":   {Job: &job.Job{Task: job.Task{Issue: "of/issue#7"}}, Event: label, Origin: origin},
		"of/actions": {Job: &job.Job{Task: job.Task{Issue: "#7"}}, Event: label, Origin: origin},
		"of/origin":  {Job: &job.Job{}, Origin: origin},
		"":           {Job: &job.Job{}},
	} {
		n.Server = server
		if got, err := n.Repository(); got != want || err != nil {
			t.Errorf("it is %q, want %q; %v", got, want, err)
		}
	}
	n := intake.RepositorySources{Job: &named, Event: command, Request: repair, Server: server}
	if _, err := n.Repository(); err == nil || err.Error() != "invalid_input/other_repository: The pull request is of of/command, and repository.name is of/job; remove repository.name, or give a pull request of of/job." {
		t.Error(err)
	}
}

func TestForgeFailure(t *testing.T) {
	for want, err := range map[string]error{
		"":                                nil,
		"forge_failed/failed: It: odd.":   errors.New("odd."),
		"forge_failed/forbidden: It: no.": fmt.Errorf("while doing: %w", &forge.Error{Kind: forge.Forbidden, Message: "no", Doing: "asking"}),
		"forge_failed/not_found: It: gone; look again.": &forge.Error{Kind: forge.NotFound, Message: "gone.", Remedy: "look again."},
		// The deadline of one connection is not that of the run.
		"forge_failed/unavailable: It: no connection.": &forge.Error{Kind: forge.Unavailable, Message: "no connection", Err: context.DeadlineExceeded},
		"context canceled":          context.Canceled,
		"context deadline exceeded": context.DeadlineExceeded,
	} {
		got := intake.ForgeFailure("It", err)
		if text := fmt.Sprint(got); got != nil && text != want || got == nil && want != "" {
			t.Errorf("%v: %v", err, got)
		}
		if err != nil && !errors.Is(got, err) {
			t.Errorf("%v is not behind %v", err, got)
		}
	}
}
