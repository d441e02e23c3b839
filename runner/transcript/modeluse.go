package transcript

import (
	"slices"

	"github.com/agent-ci/agent-ci/runner/price"
)

// ModelUse is what one of the models of a run was used for.
type ModelUse struct {
	Model   string   `json:"model"`
	Usage   Usage    `json:"usage"`
	CostUSD *float64 `json:"cost_usd,omitempty"` // nil when its price is not known
}

// CostOf is what models have cost, in US dollars; false where the price of one that was
// used is not known.
func CostOf(models []ModelUse) (cost float64, known bool) {
	for _, m := range models {
		switch {
		case m.CostUSD != nil:
			cost, known = price.Sum(cost, *m.CostUSD), true
		case m.Usage.Input+m.Usage.Output > 0:
			return 0, false
		}
	}
	return cost, known
}

// Booked adds what an answer used, and cost by its price, to what is known of the last of
// the models.
func Booked(models []ModelUse, more Usage, by *price.List) []ModelUse {
	if len(models) == 0 {
		models = []ModelUse{{}}
	}
	models = slices.Clone(models) // others may hold what it was
	last := &models[len(models)-1]
	last.Usage.add(more)
	if by.Known() {
		cost := more.Cost(by)
		if last.CostUSD != nil {
			cost = price.Sum(*last.CostUSD, cost)
		}
		last.CostUSD = &cost
	}
	return models
}
