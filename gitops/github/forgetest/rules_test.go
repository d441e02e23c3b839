package forgetest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
)

func TestRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pattern := map[string]any{"operator": "regex", "pattern": "^bot/", "negate": false}
	w.repo.Rules = []forgetest.Rule{
		{Type: "creation", Branches: "feature/*", Ruleset: "Ours", Bypass: "never"},
		{Type: "branch_name_pattern", Parameters: pattern},
		{Type: "required_status_checks", Parameters: map[string]any{"required_status_checks": []any{}, "strict_required_status_checks_policy": false, "do_not_enforce_on_create": true}},
	}
	if got := w.ask(t, "GET", widgets+"/rules/branches/feature%2Ftopic", ""); !cmp.Equal(got.items(t, "type"), []any{"creation", "branch_name_pattern", "required_status_checks"}) {
		t.Errorf("got %s", got.body)
	}
	if got := w.ask(t, "GET", widgets+"/rules/branches/other", ""); !cmp.Equal(got.items(t, "ruleset_id"), []any{2.0, 3.0}) {
		t.Errorf("got %s", got.body)
	}
	if got := w.ask(t, "GET", widgets+"/rulesets/1", ""); got.field(t, "current_user_can_bypass") != "never" {
		t.Errorf("got %s", got.body)
	}
	if got := w.ask(t, "GET", widgets+"/rulesets/2", ""); got.field(t, "current_user_can_bypass") != nil {
		t.Errorf("got %s", got.body)
	}
	if got := w.ask(t, "GET", widgets+"/rulesets/4", ""); got.status != 404 {
		t.Errorf("got %s", got.body)
	}
}

func TestProtections(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repo.Protections = map[string]forgetest.Protection{"feature/topic": {Locked: true, Signed: true, Checks: []string{"ci"}, Pulls: true, PullsExcept: []forgetest.User{{Login: "hubot"}}}}
	const path = widgets + "/branches/feature%2Ftopic/protection"
	if got := w.ask(t, "GET", path, ""); got.field(t, "enforce_admins.enabled") != true || got.field(t, "lock_branch.enabled") != true {
		t.Errorf("got %s", got.body)
	}
	for _, branch := range []string{"main", "gone"} {
		if got := w.ask(t, "GET", widgets+"/branches/"+branch+"/protection", ""); got.status != 404 {
			t.Errorf("%s: %s", branch, got.body)
		}
	}
	w.repo.SetRole("octocat", "write")
	if got := w.ask(t, "GET", path, ""); got.status != 403 {
		t.Errorf("who may write reads %s", got.body)
	}
}

// A token whose account may not write is told so before it sends anything.
func TestPushWithoutPermission(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repo.SetRole("octocat", "read")
	out, err := w.tryGit(t, "push", "--dry-run", w.url("widgets", w.Token), "main:refs/heads/new")
	if err == nil || !strings.Contains(out, "error: 403") {
		t.Errorf("%v: %s", err, out)
	}
}
