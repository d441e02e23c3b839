package job

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/task/config"
)

func TestEnvironment(t *testing.T) {
	got, warnings := Format().Environment([]string{
		"PATH=/bin",
		"AGENT_CI_VERIFY=[{run: make test}]",
		"AGENT_CI_MODEL_NAME=gpt-5",
		"AGENT_CI_TASK_PROMPT=",
		"AGENT_CI_OUT=/tmp",
		"AGENT_CI_LIMIT_TURNS=5",
		"AGENT_CI_MODEL=gpt-5",
		"AGENT_CI_JSN=1",
		"AGENT_CI_ZEBRA=secret",
	}, []string{"AGENT_CI_OUT", "AGENT_CI_JSON"})
	want := config.Layer{Name: "environment", Kind: config.ValuesLayer, Values: []config.Assignment{
		{Key: "model.name", Value: "gpt-5", Origin: "AGENT_CI_MODEL_NAME"},
		{Key: "verify", Value: "[{run: make test}]", Origin: "AGENT_CI_VERIFY"},
	}}
	must.Same(t, want, got, "layer")
	wantWarnings := []string{
		"AGENT_CI_JSN is set but is no setting; did you mean AGENT_CI_JSON?",
		"AGENT_CI_LIMIT_TURNS is set but is no setting; did you mean AGENT_CI_LIMITS_TURNS?",
		"AGENT_CI_MODEL is set but is no setting",
		"AGENT_CI_ZEBRA is set but is no setting",
	}
	must.Same(t, wantWarnings, warnings, "warnings")
}

func TestVariablesAreDistinct(t *testing.T) {
	seen := make(map[string]string)
	for _, k := range Format().Root.SettableKeys() {
		variable := config.VariableOf(k.Path)
		if before, twice := seen[variable]; twice {
			t.Errorf("%s sets both %s and %s", variable, before, k.Path)
		}
		seen[variable] = k.Path
	}
	must.Same(t, "limits.turns", seen["AGENT_CI_LIMITS_TURNS"], "AGENT_CI_LIMITS_TURNS sets")
}

func TestSetParsesValuesByKeyType(t *testing.T) {
	got := mustLoad(t, jobFile(start), config.SetLayer(
		"verify=[{name: t, run: make test}]",
		"limits.time=10m",
		"limits.tokens=9000",
		"pull_request.draft=true",
		"pull_request.labels=[a, b]",
		"pull_request.title=Fix: \"all\" # of it",
		"task.prompt=first\nsecond",
		"name=5",
		"model.headers={A: b}",
		"limits={turns: 3}",
		"repository.base=main",
		"repository.base=",
	))
	want := mustLoad(t, jobFile(`version: 1
name: "5"
task: {prompt: "first\nsecond"}
model: {headers: {A: b}}
limits: {time: 10m, tokens: 9000, turns: 3}
verify: [{name: t, run: make test}]
pull_request: {draft: true, labels: [a, b], title: "Fix: \"all\" # of it"}
`))
	must.Same(t, want, got, "job")
}

func TestSetRefusesMalformedAssignments(t *testing.T) {
	err := must.Err(LoadTemplate(config.SetLayer("limits.turns", "=5", "limits.turns=", "name=x")))
	want := []string{
		"--set: must be key=value, such as limits.turns=50",
		"--set: must be key=value, such as limits.turns=50",
		"--set: limits.turns: has no value after the =",
	}
	must.Same(t, want, strings.Split(fmt.Sprint(err), "\n"), "error")
}

func TestReportsMistakesInAssignments(t *testing.T) {
	for _, c := range []struct{ assignment, want string }{
		{"limits.turns.x=5", "--set: limits.turns: must be a whole number, not a mapping"},
		{"limit.turns=5", "--set: limit: unknown key; did you mean limits?"},
		{"policy.network.allow=[a.example.com]", "--set: policy.network.allow: cannot be set alone: policy.network must be set as a whole, as in policy.network={allow: [api.example.com]}"},
		{"policy.network[0]=a.example.com", "--set: policy.network[0]: cannot be set alone: policy.network must be set as a whole, as in policy.network={allow: [api.example.com]}"},
		{"setup[0].network[0].x=1", "--set: setup[0].network[0].x: cannot be set alone: setup[].network must be set as a whole, as in setup[].network={allow: [api.example.com]}"},
		{"policy.network.allow.host=a.example.com", "--set: policy.network.allow.host: cannot be set alone: policy.network must be set as a whole, as in policy.network={allow: [api.example.com]}"},
		{"verify[0].run=x", "--set: verify[0]: unknown key; did you mean verify?"},
		{"model=gpt-5", "--set: model: must be a mapping such as {name: gpt-5.4}, not text"},
		{"verify=[{name: a}]", "--set: verify[0].run: is missing"},
		{"a..b=5", "--set: a: unknown key"},
		{"model.headers.=5", "--set: model.headers.: this name must be a header's name"},
		{"pull_request.labels=[a, &x b]", "--set: pull_request.labels[1]: anchors and aliases are not allowed; write the value out"},
		{"limits.turns=5\n---\n6", "--set: limits.turns: the value holds a second document from here on; a job is one document"},
		{"name=a\nb", "--set: name: must not contain blanks, control characters or any of ~^:?*[\\"},
	} {
		must.Same(t, []string{c.want}, problemLines(t, jobFile(start), config.SetLayer(c.assignment)), c.assignment)
	}
}
