package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/agent/model/catalog"
	"github.com/agent-ci/agent-ci/runner/record/price"
)

// providers are the providers whose models the table has.
var providers = []string{
	"alibaba", "anthropic", "azure", "cerebras", "deepseek", "google", "groq", "minimax", "mistral", "moonshotai", "openai", "xai", "zai",
}

// source is the commit of models.dev that rows come from, and its date.
type source struct{ commit, date string }

// publishedModel has the fields of a model in api.json that the table needs.
type publishedModel struct {
	Reasoning bool `json:"reasoning"`
	Options   []struct {
		Type   string    `json:"type"`
		Values []*string `json:"values"`
	} `json:"reasoning_options"`
	Calls        bool           `json:"tool_call"`
	Cost         *publishedCost `json:"cost"`
	Limit        struct{ Context, Input, Output int64 }
	Modalities   struct{ Input []string }
	Experimental struct {
		Modes map[string]struct {
			Cost     *publishedCost `json:"cost"`
			Provider struct {
				Body struct {
					ServiceTier string `json:"service_tier"`
				} `json:"body"`
			} `json:"provider"`
		} `json:"modes"`
	} `json:"experimental"`
}

// publishedCost is a price in US dollars per million tokens; nil fields are not given.
type publishedCost struct {
	Input      *float64 `json:"input"`
	Output     *float64 `json:"output"`
	Cached     float64  `json:"cache_read"`
	CacheWrite float64  `json:"cache_write"`
	Reasoning  *float64 `json:"reasoning"`
	Tiers      []struct {
		Tier struct {
			Type string `json:"type"`
			Size int64  `json:"size"`
		} `json:"tier"`
		publishedCost
	} `json:"tiers"`
}

// rowsOf returns the rows of the table for the content of api.json. It leaves out models that cannot call tools.
func rowsOf(api []byte, from source) (rows []catalog.Entry, err error) {
	var all map[string]struct{ Models map[string]publishedModel }
	if err := json.Unmarshal(api, &all); err != nil {
		return nil, err
	}
	for _, provider := range providers {
		models := all[provider].Models
		if len(models) == 0 {
			return nil, fmt.Errorf("it has no models of %s", provider)
		}
		for _, name := range slices.Sorted(maps.Keys(models)) {
			m := models[name]
			if !m.Calls {
				continue
			}
			row, err := m.row()
			if err != nil {
				return nil, fmt.Errorf("%s of %s: %w", name, provider, err)
			}
			row.Provider, row.Model, row.Source = provider, name, "models.dev "+from.commit+", "+from.date
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// row returns the model's facts, without its name and source.
func (m publishedModel) row() (catalog.Entry, error) {
	row := catalog.Entry{
		Context: m.Limit.Context, Input: m.Limit.Input, Output: m.Limit.Output,
		Reasoning: m.Reasoning, Efforts: m.efforts(), Images: slices.Contains(m.Modalities.Input, "image"),
	}
	if row.Context == 0 {
		return row, errors.New("it has no context")
	}
	if m.Cost == nil {
		return row, nil
	}
	tiers, err := m.Cost.tiers()
	if m.Cost.isFull() {
		row.Price = &price.List{Rates: m.Cost.rates(), Tiers: tiers, Service: m.serviceTiers()}
	}
	return row, err
}

// isFull reports whether a price covers all of a model's tokens. It does not if only one of input and output costs
// something, as with a router, which adds its fee to the price of another model. Nor does it if reasoning costs
// something else than output.
func (c *publishedCost) isFull() bool {
	if c.Input == nil || c.Output == nil || *c.Input < 0 || *c.Output < 0 {
		return false
	}
	chargesBoth := (*c.Input > 0) == (*c.Output > 0) // or neither
	hasReasoningPrice := c.Reasoning != nil && *c.Reasoning != *c.Output
	return chargesBoth && !hasReasoningPrice
}

// rates returns the prices without tiers.
func (c *publishedCost) rates() price.Rates {
	return price.Rates{Input: *cmp.Or(c.Input, new(float64)), Cached: c.Cached, CacheWrite: c.CacheWrite, Output: *cmp.Or(c.Output, new(float64))}
}

// tiers returns the prices of long requests.
func (c *publishedCost) tiers() (all []price.Tier, err error) {
	for _, t := range c.Tiers {
		if t.Tier.Type != "" && t.Tier.Type != "context" {
			return nil, fmt.Errorf("a tier of its price is by %s, which this command does not know", t.Tier.Type)
		}
		all = append(all, price.Tier{Above: t.Tier.Size, Rates: t.rates()})
	}
	return all, nil
}

// serviceTiers returns the prices of the API's service tiers.
func (m publishedModel) serviceTiers() map[string]price.Rates {
	all := map[string]price.Rates{}
	for _, name := range slices.Sorted(maps.Keys(m.Experimental.Modes)) {
		if mode := m.Experimental.Modes[name]; mode.Cost != nil && mode.Provider.Body.ServiceTier != "" {
			all[mode.Provider.Body.ServiceTier] = mode.Cost.rates()
		}
	}
	return all
}

// efforts returns the accepted reasoning efforts.
func (m publishedModel) efforts() (all []string) {
	for _, option := range m.Options {
		if option.Type != "effort" {
			continue
		}
		for _, value := range option.Values {
			if value != nil { // null: the model decides
				all = append(all, *value)
			}
		}
	}
	return all
}

// encode returns the table as JSON with one row in a line, so that changes can be read.
func encode(rows []catalog.Entry) ([]byte, error) {
	lines := make([]string, len(rows))
	for i, row := range rows {
		raw, err := json.Marshal(row)
		if err != nil {
			return nil, err
		}
		lines[i] = string(raw)
	}
	return []byte("[\n" + strings.Join(lines, ",\n") + "\n]\n"), nil
}
