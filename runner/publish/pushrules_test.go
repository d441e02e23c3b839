package publish

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// Each kind of rule refuses what GitHub would, by its documentation, and nothing else.
func TestRefusesPushesAgainstRules(t *testing.T) {
	t.Parallel()
	base := gitops.Base{SHA: "aa"}
	absent, joined, earlier := (*tip)(nil), pushedTip(&forge.Commit{SHA: "aa"}), pushedTip(&forge.Commit{SHA: "bb"})
	unsigned := job.PullRequest{}
	signed := job.PullRequest{Commit: job.Commit{Sign: signSSH}}
	byForge := job.PullRequest{Commit: job.Commit{Sign: signGitHub}}
	titled := job.PullRequest{Title: "Greet"}
	to := Forge{Publisher{Project: Project{Repo: named{}}}}
	seen := map[string]bool{}
	for _, test := range []struct {
		kind     string
		operator string
		text     string // of the pattern
		there    *tip
		pull     job.PullRequest
		says     string // empty if the push is permitted
	}{
		{"creation", "", "", absent, unsigned, "forbids to create that branch"},
		{"creation", "", "", earlier, unsigned, ""},
		{"update", "", "", earlier, unsigned, "forbids to change that branch"},
		{"update", "", "", absent, unsigned, ""},
		{"non_fast_forward", "", "", earlier, unsigned, "merge or delete the branch"},
		{"non_fast_forward", "", "", joined, unsigned, ""},
		{"non_fast_forward", "", "", absent, unsigned, ""},
		{"required_signatures", "", "", absent, unsigned, "set pull_request.commit.sign"},
		{"required_signatures", "", "", absent, signed, ""},
		{"required_signatures", "", "", absent, byForge, ""},
		{"pull_request", "", "", joined, unsigned, "by pull requests"},
		{"pull_request", "", "", absent, unsigned, ""},
		{"merge_queue", "", "", earlier, unsigned, "merge queue"},
		{"merge_queue", "", "", absent, unsigned, ""},
		{"required_deployments", "", "", earlier, unsigned, "deployed"},
		{"required_deployments", "", "", absent, unsigned, ""},
		{"code_scanning", "", "", earlier, unsigned, "scanned"},
		{"code_scanning", "", "", absent, unsigned, ""},
		{"required_status_checks", "", "", absent, unsigned, "passed their checks"},
		{"required_status_checks", "not on creation", "", absent, unsigned, ""},
		{"required_status_checks", "not on creation", "", earlier, unsigned, "passed their checks"},
		{"workflows", "not on creation", "", absent, unsigned, ""},
		{"workflows", "", "", earlier, unsigned, "passed workflows"},
		{"branch_name_pattern", "regex", `^(feature|fix)/`, absent, unsigned, `wants names of branches that match ^(feature|fix)/`},
		{"branch_name_pattern", "starts_with", "agent-ci/", absent, unsigned, ""},
		{"branch_name_pattern", "regex", `^refs/heads/agent-ci/`, absent, unsigned, ""}, // where GitHub takes the whole name
		{"branch_name_pattern", "regex", `^(?!x)`, absent, unsigned, ""},                // which cannot be read
		{"branch_name_pattern", "contains", "JIRA", earlier, unsigned, ""},
		{"commit_message_pattern", "starts_with", "JIRA-", absent, titled, "change pull_request.title"},
		{"commit_message_pattern", "starts_with", "Gr", absent, titled, ""},
		{"commit_message_pattern", "starts_with", "JIRA-", absent, unsigned, ""}, // the title is not known yet
		{"commit_message_pattern", "contains", "JIRA-", absent, titled, ""},      // the summary may
		{"commit_author_email_pattern", "ends_with", "@example.com", absent, unsigned, "set GIT_AUTHOR_EMAIL"},
		{"commit_author_email_pattern", "ends_with", ".invalid", absent, unsigned, ""},
		{"committer_email_pattern", "ends_with", "@example.com", absent, unsigned, "set GIT_COMMITTER_EMAIL"},
		{"committer_email_pattern", "ends_with", "@example.com", absent, byForge, ""},
	} {
		seen[test.kind] = true
		rule := forge.PushRule{Kind: test.kind, Setting: "the ruleset Ours", NotOnCreation: test.operator == "not on creation", Pattern: forge.Pattern{Operator: test.operator, Text: test.text}}
		planned, known := to.plannedPush(taskBranch, base, test.pull, test.there), pushRefusals[test.kind]
		must.Same(t, test.says != "", planned.refusedBy(rule), test, "refused")
		reason := "push_refused"
		if test.kind == "branch_name_pattern" {
			reason = "branch_name"
		}
		if stop := to.refusalError(rule, known, taskBranch); stop.Reason != reason || !strings.Contains(stop.Message, test.says) || !strings.Contains(stop.Message, rule.Setting) {
			t.Error(stop)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(pushRefusals)) {
		if !seen[kind] {
			t.Errorf("no test of %s", kind)
		}
	}
}

// A server that tells nothing of rules leaves them to the push.
func TestUnreadableRulesPermitPush(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repo.Rules = []forgetest.Rule{{Type: "creation", Bypass: "never"}}
	for _, path := range []string{"/repos/octo/widgets/rules/branches/" + taskBranch, "/repos/octo/widgets/rulesets/1"} {
		w.forge.On("GET", path, forgetest.Reply{Status: 404, Body: `{"message": "Not Found"}`}, 1)
		must.Get(Prepare(t.Context(), w.toForge(), intake.Task{Branch: taskBranch}, w.Workspace.Base(), w.job(), true))(w.t)
	}
}

// named is a repository that has nothing but its name.
type named struct{ forge.Repository }

func (named) Name() string { return "octo/widgets" }
