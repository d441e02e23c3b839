package transcript

import (
	"slices"

	"github.com/agent-ci/agent-ci/runner/record/price"
)

// ModelUse is what one of the models of a run was used for.
type ModelUse struct {
	Model string `json:"model"`
	Usage Usage  `json:"usage"`
	// CostUSD is what that cost, each answer at the tier that it names; 0 where there is no Price.
	CostUSD float64     `json:"cost_usd,omitempty"`
	Price   *price.List `json:"price,omitempty"` // nil when it is not known
}

// CostOf is what models have cost, in US dollars; false where the price of one that was
// used is not known.
func CostOf(models []ModelUse) (cost float64, known bool) {
	for _, m := range models {
		switch {
		case m.Price.Known():
			cost, known = price.Sum(cost, m.CostUSD), true
		case m.Usage != Usage{}:
			return 0, false
		}
	}
	return cost, known
}

// Booked adds the usage of one answer to that of the last of the models.
func Booked(models []ModelUse, more Usage) []ModelUse {
	if len(models) == 0 {
		models = []ModelUse{{}}
	}
	models = slices.Clone(models) // others may hold what it was
	last := &models[len(models)-1]
	last.Usage = last.Usage.Add(more)
	if last.Price.Known() {
		last.CostUSD = price.Sum(last.CostUSD, more.Cost(last.Price))
	}
	return models
}
