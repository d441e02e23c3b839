package intake_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/intake"
	"github.com/agent-ci/agent-ci/runner/job"
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
	} {
		if got := intake.NameInURL(c.origin, c.server); got != c.want {
			t.Errorf("NameInURL(%q, %q) = %q, want %q", c.origin, c.server, got, c.want)
		}
	}
}

func TestRepositoryName(t *testing.T) {
	const server, origin = "https://github.com", "https://github.com/of/origin.git"
	for want, c := range map[string]struct {
		job             job.Job
		actions, origin string
	}{
		"of/job":     {job.Job{Repository: job.Repository{Name: "of/job"}, Task: job.Task{Issue: "of/issue#7"}}, "of/actions", origin},
		"of/issue":   {job.Job{Task: job.Task{Issue: "of/issue#7"}}, "of/actions", origin},
		"of/actions": {job.Job{Task: job.Task{Issue: "#7"}}, "of/actions", origin},
		"of/origin":  {job.Job{}, "", origin},
		"":           {job.Job{}, "", ""},
	} {
		if got := intake.RepositoryName(&c.job, c.actions, c.origin, server); got != want {
			t.Errorf("it is %q, want %q", got, want)
		}
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
