package price

import (
	"math"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestComputesCostAndBound(t *testing.T) {
	list := &List{
		Rates:   Rates{Input: 2, Cached: 0.2, CacheWrite: 2.5, Output: 10},
		Tiers:   []Tier{{272_000, Rates{Input: 4, Output: 15}}, {500_000, Rates{Input: 8, Output: 30}}},
		Service: map[string]Rates{"flex": {Input: 1, Cached: 0.1, Output: 5}},
	}
	plain := &List{Rates: Rates{Input: 2, Output: 10}}
	for _, test := range []struct {
		name    string
		list    *List
		tokens  Usage
		service string
		want    float64
		bound   Bound
	}{
		{"input and output", list, Usage{Input: 100_000, Output: 10_000}, "", 0.2 + 0.1, exact},
		{"what was cached", list, Usage{Input: 100_000, Cached: 90_000}, "default", 0.02 + 0.018, exact},
		{"what was written to the cache", list, Usage{Input: 100_000, Cached: 60_000, CacheWrite: 30_000}, "auto", 0.02 + 0.012 + 0.075, exact},
		{"without prices for the cache", plain, Usage{Input: 100_000, Cached: 60_000, CacheWrite: 30_000}, "", 0.2, exact},
		{"as long as the tier", list, Usage{Input: 272_000}, "", 0.544, exact},
		{"longer, all of it", list, Usage{Input: 272_001, Cached: 72_001, Output: 1000}, "", 0.8 + 0.288004 + 0.015, exact},
		{"longer still", list, Usage{Input: 600_000}, "", 4.8, exact},
		{"a tier of service", list, Usage{Input: 100_000, Cached: 50_000, Output: 10_000}, "flex", 0.05 + 0.005 + 0.05, exact},
		{"one of any length", list, Usage{Input: 600_000}, "flex", 0.6, exact},
		{"flex without a price", plain, Usage{Input: 100_000}, "flex", 0.2, AtMost},
		{"priority without a price", list, Usage{Input: 100_000}, "priority", 0.2, AtLeast},
		{"a tier that nobody knows", list, Usage{Input: 100_000}, "warp", 0.2, AtLeast},
		{"nothing", list, Usage{}, "", 0, exact},
		{"for nothing", &List{}, Usage{Input: 100_000, Output: 100_000}, "", 0, exact},
	} {
		test.tokens.ServiceTier = test.service
		if got := test.tokens.Cost(test.list); math.Abs(got-test.want) > 1e-12 {
			t.Errorf("%s: costs %v, want %v", test.name, got, test.want)
		}
		must.Same(t, test.bound, test.list.Bound(test.service), test.name, "bound")
	}
}

func TestFillsInCacheWritePrices(t *testing.T) {
	list := &List{
		Rates:   Rates{Input: 2, Output: 10},
		Tiers:   []Tier{{1000, Rates{Input: 4, CacheWrite: 4.5, Output: 15}}},
		Service: map[string]Rates{"flex": {Input: 1, Output: 5}},
	}
	want := &List{
		Rates:   Rates{Input: 2, CacheWrite: 2.5, Output: 10},
		Tiers:   []Tier{{1000, Rates{Input: 4, CacheWrite: 4.5, Output: 15}}},
		Service: map[string]Rates{"flex": {Input: 1, CacheWrite: 1.25, Output: 5}},
	}
	must.Same(t, want, list.WithCacheWrites(1.25))
	if list.Service["flex"].CacheWrite != 0 || list.WithCacheWrites(0) != list || (*List)(nil).WithCacheWrites(1.25) != nil {
		t.Error("a list was changed, or made of nothing")
	}
}

func TestFindsCommonPrices(t *testing.T) {
	same := Rates{Input: 2, Output: 10}
	long := []Tier{{1000, Rates{Input: 4, Output: 15}}}
	flex, fast := Rates{Input: 1, Output: 5}, Rates{Input: 4, Output: 20}
	for name, test := range map[string]struct{ a, b, want *List }{
		"the same":           {&List{Rates: same, Tiers: long}, &List{Rates: same, Tiers: long}, &List{Rates: same, Tiers: long}},
		"other rates":        {&List{Rates: same}, &List{Rates: flex}, nil},
		"other tiers":        {&List{Rates: same, Tiers: long}, &List{Rates: same}, nil},
		"one is not known":   {&List{Rates: same}, nil, nil},
		"neither is":         {nil, nil, nil},
		"services of one":    {&List{Rates: same, Service: map[string]Rates{"flex": flex}}, &List{Rates: same}, &List{Rates: same, Service: map[string]Rates{}}},
		"services of both":   {&List{Rates: same, Service: map[string]Rates{"flex": flex, "fast": fast}}, &List{Rates: same, Service: map[string]Rates{"flex": fast, "fast": fast}}, &List{Rates: same, Service: map[string]Rates{"fast": fast}}},
		"nothing is a price": {new(List), new(List), new(List)},
	} {
		must.Same(t, test.want, CommonPrices(test.a, test.b), name)
	}
}

func TestSumAvoidsRoundingErrors(t *testing.T) {
	sum := 0.0
	for _, cost := range []float64{0.15, 0.3, 1.12, 0.11, 0.0000000028} {
		sum = AddCosts(sum, cost)
	}
	must.Same(t, 1.6800000028, sum, "it is")
}
