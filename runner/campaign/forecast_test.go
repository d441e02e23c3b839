package campaign

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/runner/job"
)

func TestForecastGoesByWhatTheLedgerHas(t *testing.T) {
	b := newBook(t, 10, func(c *job.Campaign) { c.Pilot, c.Rollout.AtOnce = 3, 2 })
	p := b.plan
	p.Targets[8].Lacks = "it is archived"
	p.Targets[9].Existing = "https://example.invalid/octo-org/r009/pull/1"
	check := func(when string, want Forecast) {
		t.Helper()
		if diff := cmp.Diff(want, b.Ledger.Forecast(b.campaign, p)); diff != "" {
			t.Errorf("%s: %s", when, diff)
		}
	}
	// The pilot's three take two waves, the five others three.
	check("at first", Forecast{Targets: 10, Lacking: 1, Existing: 1, Runs: 8, Waves: 5, Most: Claim{16, 800}})
	claimed, err := b.Ledger.Claim(b.campaign, p, p.Targets[:2])
	if err != nil {
		t.Fatal(err)
	}
	for i, cost := range []float64{0.5, 1.5} {
		r := Lost(claimed[i], errors.New("none"))
		r.RunID, r.Outcome, r.CostUSD = "run", "changed", &cost
		if err := b.Ledger.Settle(b.campaign, r); err != nil {
			t.Fatal(err)
		}
	}
	estimate := &Estimate{Runs: 2, Template: true, MeanUSD: 1, SpreadUSD: 0.707107, USD: 6, LowUSD: 4.267949, HighUSD: 7.732051}
	got := b.Ledger.Forecast(b.campaign, p)
	for _, usd := range []*float64{&got.Estimate.SpreadUSD, &got.Estimate.LowUSD, &got.Estimate.HighUSD} {
		*usd = float64(int(*usd*1e6+0.5)) / 1e6
	}
	if diff := cmp.Diff(Forecast{Targets: 10, Lacking: 1, Existing: 1, Done: 2, Runs: 6, Waves: 4, Most: Claim{12, 600}, Estimate: estimate}, got); diff != "" {
		t.Error(diff)
	}

	// A target that ran and is named no more stays in the plan; one that did not run does not.
	next := &Plan{Version: PlanVersion, Campaign: "bump", Template: "one", Targets: slices.Clone(p.Targets[2:7])}
	next.Keep(p, b.Ledger.State)
	if len(next.Targets) != 7 || next.Targets[5].Key != p.Targets[0].Key || next.Targets[5].Lacks == "" {
		t.Errorf("kept: %+v", next.Targets)
	}
}
