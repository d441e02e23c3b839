// Package price owns the cost of tokens: a model's price list, with tiers for length and service,
// and the cost of an answer. It does not know models or APIs.
package price

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Rates are prices in US dollars per million tokens.
type Rates struct {
	Input      float64 `json:"input"`
	Cached     float64 `json:"cached"`                // for input read from the provider's cache; 0 means the price of Input
	CacheWrite float64 `json:"cache_write,omitempty"` // for input written to that cache; 0 means the price of Input
	Output     float64 `json:"output"`
}

// List is a model's price list. A nil list is an unknown price; a price of 0 is known.
type List struct {
	Rates
	Tiers   []Tier           `json:"tiers,omitempty"`   // by length of the input
	Service map[string]Rates `json:"service,omitempty"` // by name of the service tier
}

// Tier has the prices of an answer whose input is longer than Above. They apply to the whole
// answer.
type Tier struct {
	Above int64 `json:"above"` // tokens of input
	Rates
}

// CommonPrices returns what two lists agree on: the default prices, and the service tiers with equal
// prices. It returns nil if the default prices differ.
func CommonPrices(a, b *List) *List {
	if a == nil || b == nil || a.Rates != b.Rates || !slices.Equal(a.Tiers, b.Tiers) {
		return nil
	}
	common := *a
	common.Service = maps.Clone(a.Service)
	maps.DeleteFunc(common.Service, func(name string, rates Rates) bool {
		other, found := b.Service[name]
		return !found || other != rates
	})
	return &common
}

// Usage counts the tokens of one or more answers. Cached and CacheWrite are parts of Input,
// Reasoning is a part of Output.
type Usage struct {
	Input      int64 `json:"input"`
	Cached     int64 `json:"cached"`
	CacheWrite int64 `json:"cache_write,omitempty" yaml:"cache_write"` // to the provider's cache
	Output     int64 `json:"output"`
	Reasoning  int64 `json:"reasoning"`
	// ServiceTier is the service tier that the answer names. It is empty if the answer names none,
	// and for several answers.
	ServiceTier string `json:"service_tier,omitempty" yaml:"service_tier"`
}

// Add returns the sum of two counts, without a service tier.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Input: u.Input + v.Input, Cached: u.Cached + v.Cached, CacheWrite: u.CacheWrite + v.CacheWrite,
		Output: u.Output + v.Output, Reasoning: u.Reasoning + v.Reasoning,
	}
}

// Total returns the tokens that count for limits.tokens.
func (u Usage) Total() int64 { return u.Input + u.Output }

// Cost returns the cost of one answer in US dollars. Input includes the cached tokens and the cache writes; without a rate of
// their own they cost as much as other input. Rates are for a million tokens.
func (u Usage) Cost(list *List) float64 {
	r := list.ratesFor(u.Input, u.ServiceTier)
	uncached := u.Input - u.Cached - u.CacheWrite
	return (float64(uncached)*r.Input + float64(u.Cached)*cmp.Or(r.Cached, r.Input) +
		float64(u.CacheWrite)*cmp.Or(r.CacheWrite, r.Input) + float64(u.Output)*r.Output) / 1e6
}

// AddCosts adds costs and rounds away floating-point errors.
func AddCosts(a, b float64) float64 {
	const parts = 1e12 // of a dollar
	return math.Round((a+b)*parts) / parts
}

// ratesFor returns the rates for an answer: those of its service tier, or else of the highest length tier that its input
// exceeds, or else the default. A service tier with prices of its own has no length tiers.
func (l *List) ratesFor(input int64, service string) Rates {
	if own, named := l.Service[service]; named {
		return own
	}
	rates, tierStart := l.Rates, int64(0)
	for _, tier := range l.Tiers {
		if input > tier.Above && tier.Above >= tierStart {
			rates, tierStart = tier.Rates, tier.Above
		}
	}
	return rates
}

// Bound says how exact Cost is for a service tier.
type Bound int

const (
	exact   Bound = iota
	AtMost        // the tier costs no more than Cost returns
	AtLeast       // the tier may cost more than Cost returns
)

// standardTiers lists the service tiers with the list's default price.
var standardTiers = []string{"", "auto", "default"}

// Bound returns how exact Cost is for a service tier. A tier without prices of its own is counted
// as the standard tier.
func (l *List) Bound(service string) Bound {
	_, named := l.Service[service]
	switch {
	case named || slices.Contains(standardTiers, service):
		return exact
	case service == "flex":
		return AtMost
	}
	return AtLeast
}

// WithCacheWrites returns the list with missing prices for cache writes filled in: factor times the price
// of input.
func (l *List) WithCacheWrites(factor float64) *List {
	if l == nil || factor == 0 {
		return l
	}
	filled := &List{Rates: l.Rates.withCacheWrites(factor)}
	for _, tier := range l.Tiers {
		filled.Tiers = append(filled.Tiers, Tier{tier.Above, tier.Rates.withCacheWrites(factor)})
	}
	for name, rates := range l.Service {
		if filled.Service == nil {
			filled.Service = make(map[string]Rates, len(l.Service))
		}
		filled.Service[name] = rates.withCacheWrites(factor)
	}
	return filled
}

// withCacheWrites returns the rates with a price for cache writes: factor times the input price if there is
// none.
func (r Rates) withCacheWrites(factor float64) Rates {
	r.CacheWrite = cmp.Or(r.CacheWrite, factor*r.Input)
	return r
}
