package job

import "fmt"

// DefaultCostUSD is limits.cost_usd where nothing is said of it.
const DefaultCostUSD = 5.0

// tierName is the form of the name of a tier of service.
var tierName = matching("a tier's name: small letters, digits, - and _", `[a-z0-9][a-z0-9_-]{0,39}`)

// mostTiers is how many tiers of service may have prices.
const mostTiers = 16

// fitPrice refuses a price list without the price that its parts are beside.
func (d *decoder) fitPrice() {
	p := d.job.Model.Price
	if at, given := d.places["model.price.tiers"]; given && len(p.Tiers) > 0 && !p.Known() {
		d.complainAt(at, "model.price.tiers", "is given without model.price.input and model.price.output", "")
	}
	if at, given := d.places["model.price.service"]; given && len(p.Service) > 0 && !p.Known() {
		d.complainAt(at, "model.price.service", "is given without model.price.input and model.price.output", "")
	}
	if len(p.Service) > mostTiers {
		d.complainAt(d.places["model.price.service"], "model.price.service", fmt.Sprintf("has more than %d", mostTiers), "")
	}
	for i := 1; i < len(p.Tiers); i++ {
		if p.Tiers[i].Above <= p.Tiers[i-1].Above {
			d.complainAt(d.places["model.price.tiers"], "model.price.tiers", "does not begin with the lowest, or has one twice; sort it by above", "")
			return
		}
	}
}
