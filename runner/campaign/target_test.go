package campaign

import (
	"testing"

	"github.com/agent-ci/agent-ci/runner/campaign/spec"
	"github.com/agent-ci/agent-ci/runner/task/config"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// What a run may use and is booked at is for the campaign to say, not for a repository.
func TestRepositoryDefaultsKeepClaim(t *testing.T) {
	c := must.Get(spec.Load("c.yml", []byte("version: 1\nname: bump\ntargets: {file: targets.txt}\njob: {version: 1, task: {prompt: x}, model: {name: m}, limits: {turns: 7}}\n"), nil))(t)
	filled := must.Get(FillJob(c, Target{Key: "bump-r", Repository: "octo/r", Base: "main", SHA: "0123456789012345678901234567890123456789"}))(t)
	file := config.Layer{Name: "job.yml", Kind: config.FileLayer, Data: filled}
	defaults := config.Layer{Name: "defaults", Kind: config.DefaultsLayer, Data: []byte(`version: 1
model:
  name: dear
  base_url: https://models.example.com/v1
  price: {input: 0.001, output: 0.001}
  max_output_tokens: 9000000
limits: {cost_usd: 1000, tokens: 999999999, turns: 9}
agents: {enabled: true, most: 9, roles: {reviewer: {model: dear}}}
`)}
	alone := must.Get(job.Load(file))(t)
	with := must.Get(job.Load(defaults, file))(t)
	if a, b := alone.Model, with.Model; a.Name != b.Name || a.BaseURL != b.BaseURL || a.Price.Known() != b.Price.Known() || a.MaxOutputTokens != b.MaxOutputTokens {
		t.Errorf("the model is %+v, and %+v with the defaults", a, b)
	}
	must.Same(t, with.Limits, alone.Limits, "the limits are", "with the defaults")
	must.Same(t, false, with.Agents.Enabled, "the agents are", with.Agents, "with the defaults")
}

// A pull request that is open does not hide that the last run failed; one that people settled does.
func TestClassifiesTargetsByOutcomeAndPull(t *testing.T) {
	for _, c := range []struct {
		outcome, pull string
		want          Class
	}{
		{"changed", "open", Opened},
		{"no_changes", "open", Opened},
		{"verify_failed", "open", Red},
		{"budget_exceeded", "open", Budget},
		{"internal_error", "open", Failed},
		{"verify_failed", "merged", Merged},
		{"verify_failed", "closed", ClosedUnmerged},
		{"changed", "", Committed},
	} {
		e := TargetState{Last: &Report{Template: "one", Outcome: c.outcome}, Pull: PullState{State: c.pull}}
		must.Same(t, c.want, e.class(Target{}, "one"), c.outcome, "with a pull request that", c.pull)
		must.Same(t, Waiting, e.class(Target{}, "two"), c.outcome, "with another job")
		e.Again = true
		must.Same(t, c.want, e.class(Target{Blocker: "the campaign file names it no more"}, "two"), c.outcome, "and it cannot run again")
	}
	for blocker, want := range map[string]bool{"": true, "the campaign file names it no more": false} {
		s := Status{Targets: []Row{{Target: Target{Blocker: blocker}, Class: Failed}}}
		must.Same(t, want, s.HasFailure(), blocker)
	}
}
