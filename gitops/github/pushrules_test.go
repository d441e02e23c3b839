package github_test

import (
	"testing"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/policy/must"
)

// Rules bind where GitHub says that the account may not bypass them.
func TestPushRules(t *testing.T) {
	for name, test := range map[string]struct {
		rules      []forgetest.Rule
		protection forgetest.Protection
		role       string
		exists     bool
		want       []string
	}{
		"none":              {},
		"binding":           {rules: []forgetest.Rule{{Type: "creation", Bypass: "never"}}, want: []string{"creation"}},
		"not by a push":     {rules: []forgetest.Rule{{Type: "update", Bypass: "pull_requests_only"}}, want: []string{"update"}},
		"bypassed":          {rules: []forgetest.Rule{{Type: "creation", Bypass: "always"}, {Type: "update", Bypass: "exempt"}}},
		"not told":          {rules: []forgetest.Rule{{Type: "creation"}}},
		"of other branches": {rules: []forgetest.Rule{{Type: "creation", Bypass: "never", Branches: "main"}}},
		"protected":         {protection: forgetest.Protection{Locked: true, Signed: true, Checks: []string{"ci"}, Pulls: true}, exists: true, want: []string{"update", "required_signatures", "required_status_checks", "pull_request"}},
		"a new branch":      {protection: forgetest.Protection{Locked: true}},
		"not from admins":   {protection: forgetest.Protection{Locked: true, ExceptAdmins: true}, exists: true},
		"with exceptions":   {protection: forgetest.Protection{Pulls: true, PullsExcept: []forgetest.User{{Login: "hubot"}}}, exists: true},
		"not for our eyes":  {protection: forgetest.Protection{Locked: true}, role: "write", exists: true},
	} {
		t.Run(name, func(t *testing.T) {
			_, repository, handle := newForge(t)
			repository.Rules, repository.Protections = test.rules, map[string]forgetest.Protection{"feature/topic": test.protection}
			if test.role != "" {
				repository.SetRole("octocat", test.role)
			}
			rules := must.Get(handle.PushRules(t.Context(), "feature/topic", test.exists))(t)
			var kinds []string
			for _, r := range rules {
				kinds = append(kinds, r.Kind)
			}
			must.Same(t, test.want, kinds)
		})
	}
}

func TestPushRulesNameTheirSetting(t *testing.T) {
	server, repository, handle := newForge(t)
	repository.Rules = []forgetest.Rule{{Type: "branch_name_pattern", Bypass: "never", Ruleset: "Names", Parameters: map[string]any{"operator": "ends_with", "pattern": "x", "negate": true}}}
	rules := must.Get(handle.PushRules(t.Context(), "topic", false))(t)
	want := []forge.PushRule{{Kind: "branch_name_pattern", Setting: `the ruleset "Names" (` + server.URL + `/octo/widgets/rules/1)`, Pattern: forge.Pattern{Operator: "ends_with", Text: "x", Negate: true}}}
	must.Same(t, want, rules)
}
