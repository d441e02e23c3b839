package transcript

import (
	"slices"

	"github.com/agent-ci/agent-ci/runner/record/price"
)

// ModelUse is the use of one model in a run.
type ModelUse struct {
	Model string `json:"model"`
	Usage Usage  `json:"usage"`
	// CostUSD is the cost, each answer at its service tier; 0 without Price.
	CostUSD float64     `json:"cost_usd,omitempty"`
	Price   *price.List `json:"price,omitempty"` // nil when it is not known
}

// CostOf returns the cost of models in US dollars. It reports false if a used model's price is
// unknown.
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

// WithUsage adds one answer's usage to the last model.
func WithUsage(models []ModelUse, more Usage) []ModelUse {
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
