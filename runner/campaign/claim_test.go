package campaign

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/runner/record/price"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

func TestClaimIncludesRequestsInFlight(t *testing.T) {
	list := &price.List{Rates: price.Rates{Input: 1, Cached: 0.1, Output: 10}, Tiers: []price.Tier{{Above: 100_000, Rates: price.Rates{Input: 2, Output: 20}}}}
	written := &price.List{Rates: price.Rates{Input: 1, CacheWrite: 1.25, Output: 10}}
	limited := func(set func(*job.Job)) *job.Job {
		j := &job.Job{Limits: job.Limits{Tokens: 1_000_000, CostUSD: 5}, Agents: job.Agents{MaxOpen: 4}}
		set(j)
		return j
	}
	for _, test := range []struct {
		name     string
		job      *job.Job
		models   []Model
		want     Claim
		unpriced string
	}{
		{"one model", limited(func(*job.Job) {}), []Model{{"a", list, 100_000, 10_000}}, Claim{5 + 0.1 + 0.1, 1_110_000}, ""},
		{"a long window", limited(func(*job.Job) {}), []Model{{"a", list, 200_000, 10_000}}, Claim{5 + 0.4 + 0.2, 1_210_000}, ""},
		{"an answer that may be as long as the window", limited(func(*job.Job) {}), []Model{{"a", list, 100_000, 0}}, Claim{5 + 0.1 + 1, 1_200_000}, ""},
		{"an answer that the job bounds", limited(func(j *job.Job) { j.Model.MaxOutputTokens = 1000 }), []Model{{"a", list, 100_000, 10_000}}, Claim{5 + 0.1 + 0.01, 1_101_000}, ""},
		{"writes to the cache", limited(func(*job.Job) {}), []Model{{"a", written, 100_000, 10_000}}, Claim{5 + 0.125 + 0.1, 1_110_000}, ""},
		{"the dearer of two", limited(func(*job.Job) {}), []Model{{"a", list, 100_000, 10_000}, {"b", list, 200_000, 10_000}}, Claim{5 + 0.6, 1_210_000}, ""},
		{"agents that wait for answers, too", limited(func(j *job.Job) { j.Agents.Enabled = true }), []Model{{"a", list, 100_000, 10_000}}, Claim{5 + 5*0.2, 1_550_000}, ""},
		{"no price", limited(func(*job.Job) {}), []Model{{"a", nil, 100_000, 10_000}}, Claim{0, 1_110_000}, "the price of a is not known"},
		{"a fallback without one", limited(func(*job.Job) {}), []Model{{"a", list, 100_000, 10_000}, {"b", nil, 100_000, 10_000}}, Claim{0, 1_110_000}, "the price of b is not known"},
		{"a tier without one", limited(func(j *job.Job) { j.Model.ServiceTier = "priority" }), []Model{{"a", list, 100_000, 10_000}}, Claim{0, 1_110_000}, "service tier priority"},
		{"no limit", limited(func(j *job.Job) { j.Limits.CostUSD = 0 }), []Model{{"a", list, 100_000, 10_000}}, Claim{0, 1_110_000}, "limits.cost_usd is 0"},
	} {
		got, unpriced := ClaimOf(test.job, test.models)
		got.USD, test.want.USD = price.AddCosts(got.USD, 0), price.AddCosts(test.want.USD, 0)
		if got != test.want || (unpriced == "") != (test.unpriced == "") || !strings.Contains(unpriced, test.unpriced) {
			t.Errorf("%s: %+v, %q; want %+v, %q", test.name, got, unpriced, test.want, test.unpriced)
		}
	}
}

func TestChargesLostRequestForKnownInput(t *testing.T) {
	cheap, dear := &price.List{Rates: price.Rates{Input: 1, Output: 10}}, &price.List{Rates: price.Rates{Input: 2, Output: 20}}
	wide := Claim{1, 1_000_000}
	models := []Model{{"a", cheap, 200_000, 10_000}, {"b", dear, 100_000, 10_000}}
	for _, test := range []struct {
		name    string
		output  int
		claim   Claim
		request Request
		want    Claim
	}{
		{"input and the longest answer", 0, wide, Request{"a", 30_000}, Claim{0.03 + 0.1, 40_000}},
		{"an answer that the job bounds", 1000, wide, Request{"a", 30_000}, Claim{0.03 + 0.01, 31_000}},
		{"more than the window", 0, wide, Request{"b", 300_000}, Claim{0.2 + 0.2, 110_000}},
		{"a model that is not known", 0, wide, Request{"c", 1}, Claim{0.4, 210_000}},
		{"more than the claim has", 0, Claim{0.1, 20_000}, Request{"b", 30_000}, Claim{0.1, 20_000}},
	} {
		j := &job.Job{Model: job.Model{MaxOutputTokens: int64(test.output)}}
		got := test.claim.MaxLostUsage(j, models, test.request)
		if got.USD = price.AddCosts(got.USD, 0); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}
