package campaign

import (
	"math"

	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/price"
)

// Forecast is what a plan comes to, before anything of it is run.
type Forecast struct {
	Targets  int       `json:"targets"`
	Lacking  int       `json:"lacking"`  // cannot run
	Existing int       `json:"existing"` // have an open pull request already
	Done     int       `json:"done"`     // ran with this job, and do not run again
	Runs     int       `json:"runs"`     // that are left
	Waves    int       `json:"waves"`    // of rollout.at_once runs, the pilot's first
	Most     Claim     `json:"most"`     // that the runs may use: each its claim
	Estimate *Estimate `json:"estimate"` // null where no run is there to go by
}

// Estimate is what runs that are left will cost by those that are over: the mean of these for each,
// give or take their standard deviation.
type Estimate struct {
	Runs      int     `json:"runs"`     // it goes by
	Template  bool    `json:"same_job"` // they had this job; else they had another one of the campaign
	MeanUSD   float64 `json:"mean_usd"` // of one
	SpreadUSD float64 `json:"spread_usd"`
	USD       float64 `json:"usd"` // of all that are left
	LowUSD    float64 `json:"low_usd"`
	HighUSD   float64 `json:"high_usd"`
}

// Forecast tells what the runs that a plan has left come to.
func (s *State) Forecast(c *job.Campaign, p *Plan) Forecast {
	standing := s.Of(c.Name)
	f := Forecast{Targets: len(p.Targets)}
	pilot, rest := 0, 0
	for _, t := range p.Targets {
		switch {
		case t.Lacks != "":
			f.Lacking++
			continue
		case !standing.left(t, p.Template):
			f.Done++
		case t.Existing != "" && c.OnExisting == "skip":
			f.Existing++
		case pilot < c.Pilot && !standing.Approved:
			f.Runs++
		default:
			f.Runs++
			rest++
		}
		pilot++
	}
	waves := func(runs int) int { return (runs + c.Rollout.AtOnce - 1) / c.Rollout.AtOnce }
	f.Waves = waves(f.Runs-rest) + waves(rest)
	f.Most = Claim{price.Sum(float64(f.Runs)*p.Claim.USD, 0), int64(f.Runs) * p.Claim.Tokens}
	f.Estimate = standing.estimate(p.Template, f.Runs)
	return f
}

// estimate goes by the last runs of targets with the same job, or else with any of the campaign.
func (c *Standing) estimate(template string, left int) *Estimate {
	for _, same := range []bool{true, false} {
		var costs []float64
		for _, e := range c.targets {
			if r := e.Last; r != nil && r.RunID != "" && r.CostUSD != nil && (!same || r.Template == template) {
				costs = append(costs, *r.CostUSD)
			}
		}
		if len(costs) > 0 {
			return estimateOf(costs, same, left)
		}
	}
	return nil
}

func estimateOf(costs []float64, same bool, left int) *Estimate {
	sum := 0.0
	for _, cost := range costs {
		sum += cost
	}
	mean, squares := sum/float64(len(costs)), 0.0
	for _, cost := range costs {
		squares += (cost - mean) * (cost - mean)
	}
	spread := math.Sqrt(squares / float64(max(len(costs)-1, 1)))
	all, around := mean*float64(left), spread*math.Sqrt(float64(left))
	round := func(usd float64) float64 { return price.Sum(max(usd, 0), 0) }
	return &Estimate{len(costs), same, round(mean), round(spread), round(all), round(all - around), round(all + around)}
}

// Keep adds to a plan the targets of the one before that had runs and are named no more: what became
// of them goes on to be told.
func (p *Plan) Keep(before *Plan, s *State) {
	if before == nil {
		return
	}
	standing := s.Of(p.Campaign)
	has := map[string]bool{}
	for _, t := range p.Targets {
		has[t.Key] = true
	}
	for _, t := range before.Targets {
		if e := standing.Entry(t.Key); !has[t.Key] && (e.Claimed != nil || e.Last != nil) {
			t.Lacks, t.After = "the campaign file names it no more", nil
			p.Targets = append(p.Targets, t)
		}
	}
}

// Blocked says why the whole plan cannot run; empty where it can.
func (p *Plan) Blocked(b job.Spending) string {
	if p.Unpriced != "" && (b.USD > 0 || b.USDPerDay > 0) {
		return p.Unpriced
	}
	return ""
}
