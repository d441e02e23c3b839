package settings_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

const repositoryRules = ".github/agent-ci.rules"

func forbids(program string) string {
	return `prefix_rule(pattern = ["` + program + `"], decision = "forbidden")` + "\n"
}

func TestRulesAreThoseOfTheBaseAndOfTheOperator(t *testing.T) {
	operator := t.TempDir()
	base := committed(t, files{repositoryRules: forbids("own"), "ci/more.rules": forbids("more")})
	files{repositoryRules: forbids("new"), "ci/more.rules": forbids("new")}.put(t, base.Root()) // which no base has
	files{"op.rules": forbids("op")}.put(t, operator)
	for _, c := range []struct{ operators, refused []string }{
		{nil, []string{"own"}},
		{[]string{"ci/more.rules"}, []string{"own", "more"}},
		{[]string{filepath.Join(base.Root(), "ci/more.rules"), filepath.Join(operator, "op.rules")}, []string{"own", "more", "op"}},
	} {
		set := must.Get(settings.ReadRules(t.Context(), base, c.operators))(t)
		for _, program := range []string{"own", "more", "op", "new"} {
			d := policy.Commands{Rules: set, Sandboxed: true}.Decide(policy.Request{Argv: []string{program}, Dir: base.Root()})
			must.Same(t, slices.Contains(c.refused, program), d.Action == policy.Refuse, "with", c.operators, program, "is decided on as", d.Action, "by", d.Rule)
		}
	}
}

func TestReportsMistakesInRules(t *testing.T) {
	base := committed(t, files{repositoryRules: `prefix_rule(pattern = ["x"], decision = "perhaps")` + "\nnonsense(\n"})
	_, err := settings.ReadRules(t.Context(), base, nil)
	outcometest.Want(t, err, "invalid_input/rules", "agent-ci sandbox --explain -- true lists them all")
}

func TestRulesNeedAbsolutePathWithoutCheckout(t *testing.T) {
	folder := t.TempDir()
	files{"op.rules": forbids("op")}.put(t, folder)
	must.Get(settings.ReadRules(t.Context(), settings.Commit{}, nil))(t)
	must.Get(settings.ReadRules(t.Context(), settings.Commit{}, []string{filepath.Join(folder, "op.rules")}))(t)
	_, err := settings.ReadRules(t.Context(), settings.Commit{}, []string{filepath.Join(folder, "op.rules"), "ci/more.rules"})
	outcometest.Want(t, err, "invalid_input/rules", "ci/more.rules (policy.rules) are in a repository, and there is none here")
}
