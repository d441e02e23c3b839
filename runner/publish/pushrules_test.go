package publish

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

func operator(name, pattern string) map[string]any {
	return map[string]any{"operator": name, "pattern": pattern, "negate": false}
}

// Each kind of rule refuses what GitHub would, by its documentation, and nothing else.
func TestRulesOnPushes(t *testing.T) {
	t.Parallel()
	const (
		absent  = "" // the branch is not there
		earlier = "of an earlier run"
		joined  = "at the base"
	)
	signed := job.PullRequest{Commit: job.Commit{Sign: signSSH, KeyEnv: "KEY"}}
	byForge := job.PullRequest{Commit: job.Commit{Sign: signGitHub}}
	worlds := map[string]*world{absent: newWorld(t), earlier: newWorld(t), joined: newWorld(t)}
	worlds[earlier].onForge(taskBranch, "hello.txt", "Hello.\n", "Greet\n\n"+forge.TrailerRun+": other\n"+forge.TrailerBase+": "+worlds[earlier].Workspace.Base().SHA)
	worlds[joined].git(worlds[joined].repo.Dir, "branch", taskBranch, "main")
	key := "KEY=" + sshKey(t)
	tips := map[string]*tip{}
	for branch, w := range worlds {
		w.Env = append(w.Env, key)
		var err error
		tips[branch], err = w.toForge().tip(t.Context(), taskBranch)
		w.must(err)
	}
	seen := map[string]bool{}
	for _, test := range []struct {
		kind       string
		parameters map[string]any
		branch     string
		pull       job.PullRequest
		reason     string
		says       string
	}{
		{"creation", nil, absent, job.PullRequest{}, "push_refused", "forbids to create that branch"},
		{"creation", nil, earlier, job.PullRequest{}, "", ""},
		{"update", nil, earlier, job.PullRequest{}, "push_refused", "forbids to change that branch"},
		{"update", nil, absent, job.PullRequest{}, "", ""},
		{"non_fast_forward", nil, earlier, job.PullRequest{}, "push_refused", "merge or delete the branch"},
		{"non_fast_forward", nil, joined, job.PullRequest{}, "", ""},
		{"non_fast_forward", nil, absent, job.PullRequest{}, "", ""},
		{"required_signatures", nil, absent, job.PullRequest{}, "push_refused", "set pull_request.commit.sign"},
		{"required_signatures", nil, absent, signed, "", ""},
		{"required_signatures", nil, absent, byForge, "", ""},
		{"pull_request", nil, joined, job.PullRequest{}, "push_refused", "by pull requests"},
		{"pull_request", nil, absent, job.PullRequest{}, "", ""},
		{"merge_queue", nil, earlier, job.PullRequest{}, "push_refused", "merge queue"},
		{"merge_queue", nil, absent, job.PullRequest{}, "", ""},
		{"required_deployments", map[string]any{"required_deployment_environments": []string{"x"}}, earlier, job.PullRequest{}, "push_refused", "deployed"},
		{"required_deployments", map[string]any{"required_deployment_environments": []string{"x"}}, absent, job.PullRequest{}, "", ""},
		{"code_scanning", nil, earlier, job.PullRequest{}, "push_refused", "scanned"},
		{"code_scanning", nil, absent, job.PullRequest{}, "", ""},
		{"required_status_checks", nil, absent, job.PullRequest{}, "push_refused", "passed their checks"},
		{"required_status_checks", map[string]any{"do_not_enforce_on_create": true}, absent, job.PullRequest{}, "", ""},
		{"required_status_checks", map[string]any{"do_not_enforce_on_create": true}, earlier, job.PullRequest{}, "push_refused", "passed their checks"},
		{"workflows", map[string]any{"do_not_enforce_on_create": true}, absent, job.PullRequest{}, "", ""},
		{"workflows", nil, earlier, job.PullRequest{}, "push_refused", "passed workflows"},
		{"branch_name_pattern", operator("regex", `^(feature|fix)/`), absent, job.PullRequest{}, "branch_name", `wants names of branches that match ^(feature|fix)/`},
		{"branch_name_pattern", operator("starts_with", "agent-ci/"), absent, job.PullRequest{}, "", ""},
		{"branch_name_pattern", operator("regex", `^refs/heads/agent-ci/`), absent, job.PullRequest{}, "", ""}, // where GitHub takes the whole name
		{"branch_name_pattern", operator("regex", `^(?!x)`), absent, job.PullRequest{}, "", ""},                // which cannot be read
		{"branch_name_pattern", operator("contains", "JIRA"), earlier, job.PullRequest{}, "", ""},
		{"commit_message_pattern", operator("starts_with", "JIRA-"), absent, job.PullRequest{Title: "Greet"}, "push_refused", "change pull_request.title"},
		{"commit_message_pattern", operator("starts_with", "Gr"), absent, job.PullRequest{Title: "Greet"}, "", ""},
		{"commit_message_pattern", operator("starts_with", "JIRA-"), absent, job.PullRequest{}, "", ""},            // the title is not known yet
		{"commit_message_pattern", operator("contains", "JIRA-"), absent, job.PullRequest{Title: "Greet"}, "", ""}, // the summary may
		{"commit_author_email_pattern", operator("ends_with", "@example.com"), absent, job.PullRequest{}, "push_refused", "set GIT_AUTHOR_EMAIL"},
		{"commit_author_email_pattern", operator("ends_with", ".invalid"), absent, job.PullRequest{}, "", ""},
		{"committer_email_pattern", operator("ends_with", "@example.com"), absent, job.PullRequest{}, "push_refused", "set GIT_COMMITTER_EMAIL"},
		{"committer_email_pattern", operator("ends_with", "@example.com"), absent, byForge, "", ""},
		{"deletion", nil, earlier, job.PullRequest{}, "", ""},
		{"required_linear_history", nil, earlier, job.PullRequest{}, "", ""},
		{"file_path_restriction", map[string]any{"restricted_file_paths": []string{"*"}}, absent, job.PullRequest{}, "", ""}, // the files are not known yet
		{"not_known_yet", nil, earlier, job.PullRequest{}, "", ""},
	} {
		seen[test.kind] = true
		t.Run(test.kind+" "+test.branch+" "+test.says, func(t *testing.T) {
			w := worlds[test.branch]
			w.repo.Rules = []forgetest.Rule{{Type: test.kind, Parameters: test.parameters, Bypass: "never", Ruleset: "Ours"}}
			err := w.toForge().requirePermitted(t.Context(), taskBranch, w.Workspace.Base(), test.pull, tips[test.branch])
			if test.reason == "" {
				w.must(err)
				return
			}
			if stop := wantStop(t, err, test.reason); !strings.Contains(stop.Message, test.says) || !strings.Contains(stop.Message, `the ruleset "Ours" (http`) {
				t.Error(stop)
			}
			w.repo.Rules[0].Bypass = "always"
			w.must(w.toForge().requirePermitted(t.Context(), taskBranch, w.Workspace.Base(), test.pull, tips[test.branch]))
		})
	}
	for _, kind := range slices.Sorted(maps.Keys(pushRefusals)) {
		if !seen[kind] {
			t.Errorf("no test of %s", kind)
		}
	}
}

// A server that tells nothing of rules leaves them to the push.
func TestRulesThatAreNotTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repo.Rules = []forgetest.Rule{{Type: "creation", Bypass: "never"}}
	for _, path := range []string{"/repos/octo/widgets/rules/branches/" + taskBranch, "/repos/octo/widgets/rulesets/1"} {
		w.forge.On("GET", path, forgetest.Reply{Status: 404, Body: `{"message": "Not Found"}`}, 1)
		_, err := Prepare(t.Context(), w.toForge(), intake.Task{Branch: taskBranch}, w.Workspace.Base(), w.job(), true)
		w.must(err)
	}
}
