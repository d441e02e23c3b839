package transcript

import (
	"slices"

	"github.com/agent-ci/agent-ci/runner/record/price"
)

// ModelUse is the use of one model in a run.
type ModelUse struct {
	Model string `json:"model"`
	Usage Usage  `json:"usage"`
	// CostUSD is the cost of all answers, each at its service tier. It is 0 if Price is nil.
	CostUSD float64     `json:"cost_usd,omitempty"`
	Price   *price.List `json:"price,omitempty"` // nil if unknown
}

// CostOf returns the cost of models in US dollars. known is false if the price of a used model is
// unknown, or if no model has a price.
func CostOf(models []ModelUse) (cost float64, known bool) {
	for _, m := range models {
		switch {
		case m.Price != nil:
			cost, known = price.AddCosts(cost, m.CostUSD), true
		case m.Usage != Usage{}:
			return 0, false
		}
	}
	return cost, known
}

// CountForLast returns models with the usage of one more answer, counted for the last of them.
func CountForLast(models []ModelUse, added Usage) []ModelUse {
	if len(models) == 0 {
		models = []ModelUse{{}}
	}
	models = slices.Clone(models) // others may still use the old slice
	last := &models[len(models)-1]
	last.Usage = last.Usage.Add(added)
	if last.Price != nil {
		last.CostUSD = price.AddCosts(last.CostUSD, added.Cost(last.Price))
	}
	return models
}
