package intake_test

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// ownTask is a job with a task of its own, on whatever event.
func ownTask() *job.Job {
	j := trusting()
	j.Task = job.Task{Prompt: "Greet."}
	return j
}

func TestAdmitFollowsTrustRules(t *testing.T) {
	const (
		fork    = `{"pull_request": {"number": 5, "head": {"repo": {"full_name": "else/r"}}}, ` + octocat + `}`
		gone    = `{"pull_request": {"number": 5, "head": {"repo": null}}, ` + octocat + `}`
		here    = `{"pull_request": {"number": 5, "head": {"repo": {"full_name": "O/R"}}}, ` + octocat + `}`
		ranFork = `{"workflow_run": {"head_repository": {"full_name": "else/r"}}, ` + octocat + `}`
		talk    = `{"action": "created", "issue": {"number": 4, "pull_request": {}}, ` + octocat + `}`
		plain   = `{"action": "opened", "issue": {"number": 7, "pull_request": null}, ` + octocat + `}`
	)
	forks, lenient := ownTask(), trusting()
	forks.Trust.Forks, lenient.Trust.Forks = true, true // trust.forks is about events, not about branches
	for name, c := range map[string]struct {
		job            *job.Job
		event, payload string
		roles          string // of octocat
		ends           string
		calls          []string
	}{
		"a writer's label":           {trusting(), "issues", labeled, "write", "", []string{"permission octocat"}},
		"a greater role":             {trusting(), "issues", labeled, "admin", "", []string{"permission octocat"}},
		"a reader's label":           {trusting(), "issues", labeled, "triage", "skipped/untrusted_actor", []string{"permission octocat"}},
		"an unknown role":            {trusting(), "issues", labeled, "auditor", "skipped/untrusted_actor", []string{"permission octocat"}},
		"a bot that is trusted":      {trusting(), "issues", strings.ReplaceAll(labeled, `"octocat"`, `"helper[bot]"`), "", "", nil},
		"a bot that is not":          {trusting(), "issues", strings.Replace(labeled, `"User"`, `"Bot"`, 1), "admin", "skipped/untrusted_actor", nil},
		"nobody":                     {trusting(), "issues", strings.Replace(labeled, "octocat", "", 1), "", "skipped/untrusted_actor", nil},
		"what only writers do":       {trusting(), "workflow_dispatch", `{"inputs": {"prompt": "Greet."}}`, "", "", nil},
		"no event":                   {ownTask(), "", "", "", "", nil},
		"a broken event":             {ownTask(), "issues", `{`, "", "invalid_input/event", nil},
		"a push, broken":             {ownTask(), "push", `{`, "", "", nil},
		"an own task, on an issue":   {ownTask(), "issues", plain, "write", "", []string{"permission octocat"}},
		"an own task, by a reader":   {ownTask(), "issues", plain, "read", "skipped/untrusted_actor", []string{"permission octocat"}},
		"an own task, here":          {ownTask(), "pull_request_target", here, "write", "", []string{"permission octocat"}},
		"an own task, on a fork":     {ownTask(), "pull_request_target", fork, "write", "skipped/fork", []string{"permission octocat"}},
		"an own task, fork is gone":  {ownTask(), "pull_request_target", gone, "write", "skipped/fork", []string{"permission octocat"}},
		"an own task, forks allowed": {forks, "pull_request_target", fork, "write", "", []string{"permission octocat"}},
		"an own task, after a fork":  {ownTask(), "workflow_run", ranFork, "write", "skipped/fork", []string{"permission octocat"}},
		"an own task, talk on a fork": {
			ownTask(), "issue_comment", talk, "write", "skipped/fork", []string{"permission octocat", "pull 4"},
		},
		"a run's pull request":    {trusting(), "issue_comment", onPull(9, "more"), "write", "", []string{"permission octocat", "pull 9"}},
		"a person's pull request": {trusting(), "issue_comment", onPull(8, "more"), "write", "", []string{"permission octocat", "pull 8", "default branch"}},
		"a request on a fork":     {lenient, "issue_comment", onPull(4, "more"), "write", "skipped/fork", []string{"permission octocat", "pull 4"}},
		"a closed pull request":   {trusting(), "issue_comment", onPull(3, "more"), "write", "skipped/pull_request_closed", []string{"permission octocat", "pull 3"}},
		"of the default branch":   {trusting(), "issue_comment", onPull(2, "more"), "write", "skipped/foreign_branch", []string{"permission octocat", "pull 2", "default branch"}},
	} {
		on := &server{roles: map[string]string{"octocat": c.roles}, pulls: map[int]*forge.PullRequest{
			9: {Number: 9, State: "open", Head: "agent-ci/issue-7", HeadRepository: "o/r", Base: "main"},
			8: {Number: 8, State: "open", Head: "polish", HeadRepository: "o/r", Base: "main"},
			4: {Number: 4, State: "open", Head: "polish", HeadRepository: "else/r"},
			3: {Number: 3, State: "closed", Head: "agent-ci/x", HeadRepository: "o/r"},
			2: {Number: 2, State: "open", Head: "main", HeadRepository: "o/r", Base: "next"},
		}}
		pull, err := sourceOf(t, on, c.job, c.event, c.payload).RequireTrustedRequester(t.Context())
		must.Same(t, c.ends, outcometest.End(err), name, err)
		must.Same(t, c.calls, on.calls, name)
		must.Same(t, c.ends == "" && strings.HasSuffix(name, "pull request"), pull != nil && err == nil, name, "it goes on with", pull)
	}
}

// TestAdmitNeedsTokenAndRepository refuses to take anybody's word where nobody can be asked
// about it.
func TestAdmitNeedsTokenAndRepository(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*intake.Source)
		ends   string
	}{
		"no token":               {func(s *intake.Source) { s.Event.HasToken = false }, "invalid_input/no_token"},
		"no repository":          {func(s *intake.Source) { s.Event.Repository, s.Request = "", nil }, "invalid_input/event"},
		"not to publish, a join": {func(s *intake.Source) { s.Publishes = false }, "skipped/foreign_branch"},
	} {
		on := &server{roles: map[string]string{"octocat": "write"}, pulls: map[int]*forge.PullRequest{8: {Number: 8, State: "open", Head: "polish", HeadRepository: "o/r"}}}
		s := sourceOf(t, on, trusting(), "issue_comment", onPull(8, "more"))
		c.change(s)
		must.Same(t, c.ends, outcometest.End(must.Err(s.RequireTrustedRequester(t.Context()))), name)
	}
}

// TestAdmitReportsForgeFailures tells what of the forge's API failed.
func TestAdmitReportsForgeFailures(t *testing.T) {
	for _, call := range []string{"permission octocat", "pull 8", "default branch"} {
		on := &server{
			roles: map[string]string{"octocat": "write"}, pulls: map[int]*forge.PullRequest{8: {Number: 8, State: "open", Head: "polish", HeadRepository: "o/r"}},
			fails: map[string]error{call: &forge.Error{Kind: forge.Unavailable, Message: "no connection"}},
		}
		must.Same(t, "forge_failed/unavailable", outcometest.End(must.Err(sourceOf(t, on, trusting(), "issue_comment", onPull(8, "more")).RequireTrustedRequester(t.Context()))), call)
	}
	on := &server{fails: map[string]error{"permission octocat": &forge.Error{Kind: forge.Invalid, Message: "no name"}}}
	must.Same(t, "skipped/untrusted_actor", outcometest.End(must.Err(sourceOf(t, on, trusting(), "issues", labeled).RequireTrustedRequester(t.Context()))), "an account that is gone")
}
