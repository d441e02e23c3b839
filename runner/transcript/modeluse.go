package transcript

import "slices"

// ModelUse is what one of the models of a run was used for.
type ModelUse struct {
	Model string `json:"model"`
	Usage Usage  `json:"usage"`
	Price *Price `json:"price,omitempty"` // nil when it is not known
}

// CostOf is what models have cost, in US dollars; false where the price of one that was
// used is not known.
func CostOf(models []ModelUse) (cost float64, known bool) {
	for _, m := range models {
		switch {
		case m.Price != nil:
			cost, known = cost+m.Price.Of(m.Usage), true
		case m.Usage != Usage{}:
			return 0, false
		}
	}
	return cost, known
}

// Booked adds usage to that of the last of the models.
func Booked(models []ModelUse, more Usage) []ModelUse {
	if len(models) == 0 {
		models = []ModelUse{{}}
	}
	models = slices.Clone(models) // others may hold what it was
	models[len(models)-1].Usage.add(more)
	return models
}
