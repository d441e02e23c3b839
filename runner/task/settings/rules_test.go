package settings_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

const repositoryRules = ".github/agent-ci.rules"

func forbids(program string) string {
	return `prefix_rule(pattern = ["` + program + `"], decision = "forbidden")` + "\n"
}

func TestRulesAreThoseOfTheBaseAndOfTheOperator(t *testing.T) {
	operator := t.TempDir()
	base := committed(t, files{repositoryRules: forbids("own"), "ci/more.rules": forbids("more")})
	changed := files{repositoryRules: "", "ci/more.rules": "", "ci/new.rules": forbids("new")} // which no base has
	changed.put(t, base.Root())
	files{"op.rules": forbids("op"), "checkout": "-> " + base.Root(), "link.rules": "-> " + filepath.Join(base.Root(), "ci/more.rules")}.put(t, operator)
	for name, c := range map[string]struct {
		operators []string
		refused   []string
		says      string
	}{
		"the repository's":     {nil, []string{"own"}, ""},
		"more from the base":   {[]string{"ci/more.rules"}, []string{"own", "more"}, ""},
		"by its whole path":    {[]string{filepath.Join(base.Root(), "ci/more.rules")}, []string{"own", "more"}, ""},
		"through a link":       {[]string{filepath.Join(operator, "checkout/ci/more.rules")}, []string{"own", "more"}, ""},
		"by a link to it":      {[]string{filepath.Join(operator, "link.rules")}, []string{"own", "more"}, ""},
		"the operator's":       {[]string{filepath.Join(operator, "op.rules"), "ci/more.rules"}, []string{"own", "op", "more"}, ""},
		"not committed":        {[]string{"ci/new.rules"}, nil, "ci/new.rules"},
		"not committed either": {[]string{filepath.Join(base.Root(), "ci/new.rules")}, nil, "ci/new.rules"},
		"not there":            {[]string{filepath.Join(operator, "none.rules")}, nil, "none.rules"},
		"in no folder":         {[]string{filepath.Join(operator, "none/none.rules")}, nil, "none.rules"},
		"out of the checkout":  {[]string{"../op.rules"}, nil, "../op.rules"},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := settings.ReadRules(t.Context(), base, c.operators)
			if c.says != "" {
				wantStop(t, err, "rules", c.says)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, program := range []string{"own", "more", "op", "new"} {
				d := policy.Commands{Rules: set, Sandboxed: true}.Decide(policy.Request{Argv: []string{program}, Dir: base.Root()})
				if (d.Action == policy.Refuse) != slices.Contains(c.refused, program) {
					t.Errorf("%s is decided on as %s by %q", program, d.Action, d.Rule)
				}
			}
		})
	}
}

func TestAMistakeInRulesIsTold(t *testing.T) {
	base := committed(t, files{repositoryRules: `prefix_rule(pattern = ["x"], decision = "perhaps")` + "\nnonsense(\n"})
	_, err := settings.ReadRules(t.Context(), base, nil)
	wantStop(t, err, "rules", "agent-ci sandbox --explain -- true lists them all")
}

func TestWithoutACheckoutRulesNeedAWholePath(t *testing.T) {
	folder := t.TempDir()
	files{"op.rules": forbids("op")}.put(t, folder)
	if _, err := settings.ReadRules(t.Context(), settings.Commit{}, nil); err != nil {
		t.Error(err)
	}
	if _, err := settings.ReadRules(t.Context(), settings.Commit{}, []string{filepath.Join(folder, "op.rules")}); err != nil {
		t.Error(err)
	}
	_, err := settings.ReadRules(t.Context(), settings.Commit{}, []string{filepath.Join(folder, "op.rules"), "ci/more.rules"})
	wantStop(t, err, "rules", "ci/more.rules (policy.rules) are in a repository, and there is none here")
}
