package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// providers are the providers whose models the table has.
var providers = []string{
	"alibaba", "anthropic", "azure", "cerebras", "deepseek", "google", "groq", "minimax", "mistral", "moonshotai", "openai", "xai", "zai",
}

// sourceColumns are the columns of models-dev.tsv: facts from models.dev and their source.
var sourceColumns = []string{
	"provider", "model", "context", "input_limit", "output_limit", "price", "usd_reasoning", "tiers", "service",
	"reasoning", "efforts", "images", "released", "status", "source", "date",
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
	Released     string         `json:"release_date"`
	Status       string         `json:"status"`
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
	Cached     *float64 `json:"cache_read"`
	CacheWrite *float64 `json:"cache_write"`
	Reasoning  *float64 `json:"reasoning"`
	Tiers      []struct {
		Tier struct {
			Type string `json:"type"`
			Size int64  `json:"size"`
		} `json:"tier"`
		publishedCost
	} `json:"tiers"`
}

// tableOf returns the content of models-dev.tsv for the content of api.json. It leaves out models that cannot call
// tools.
func tableOf(api []byte, from source) ([]byte, error) {
	var all map[string]struct{ Models map[string]publishedModel }
	if err := json.Unmarshal(api, &all); err != nil {
		return nil, err
	}
	table := bytes.NewBufferString(strings.Join(sourceColumns, "\t") + "\n")
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
			cells, err := m.cells()
			if err != nil {
				return nil, fmt.Errorf("%s of %s: %w", name, provider, err)
			}
			cells = slices.Concat([]string{provider, name}, cells, []string{"models.dev " + from.commit, from.date})
			fmt.Fprintln(table, strings.Join(cells, "\t"))
		}
	}
	return table.Bytes(), nil
}

// cells returns the model's values for sourceColumns, without the first two and the last two columns.
func (m publishedModel) cells() ([]string, error) {
	var price, reasoning, tiers string
	if m.Cost != nil {
		var err error
		if tiers, err = m.Cost.tiers(); err != nil {
			return nil, err
		}
		price, reasoning = m.Cost.rates(), dollarsCell(m.Cost.Reasoning)
	}
	return []string{
		numberCell(m.Limit.Context), numberCell(m.Limit.Input), numberCell(m.Limit.Output), price, reasoning, tiers, m.serviceTiers(),
		yesOrNo(m.Reasoning), m.efforts(), yesOrNo(slices.Contains(m.Modalities.Input, "image")), m.Released, m.Status,
	}, nil
}

// rates returns the prices as INPUT/CACHED/CACHE_WRITE/OUTPUT. A part is empty if the price is unknown.
func (c *publishedCost) rates() string {
	return strings.Join([]string{dollarsCell(c.Input), dollarsCell(c.Cached), dollarsCell(c.CacheWrite), dollarsCell(c.Output)}, "/")
}

// tiers returns the prices of long requests as LENGTH:RATES;LENGTH:RATES. RATES apply from LENGTH input tokens on.
func (c *publishedCost) tiers() (string, error) {
	all := make([]string, len(c.Tiers))
	for i, t := range c.Tiers {
		if t.Tier.Type != "" && t.Tier.Type != "context" {
			return "", fmt.Errorf("a tier of its price is by %s, which this command does not know", t.Tier.Type)
		}
		all[i] = numberCell(t.Tier.Size) + ":" + t.rates()
	}
	return strings.Join(all, ";"), nil
}

// serviceTiers returns the prices of the API's service tiers as NAME:RATES;NAME:RATES.
func (m publishedModel) serviceTiers() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(m.Experimental.Modes)) {
		if mode := m.Experimental.Modes[name]; mode.Cost != nil && mode.Provider.Body.ServiceTier != "" {
			all = append(all, mode.Provider.Body.ServiceTier+":"+mode.Cost.rates())
		}
	}
	return strings.Join(all, ";")
}

// efforts returns the accepted reasoning efforts, separated by |.
func (m publishedModel) efforts() string {
	var all []string
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
	return strings.Join(all, "|")
}

// dollarsCell returns a price as text, or "" for nil.
func dollarsCell(usd *float64) string {
	if usd == nil {
		return ""
	}
	return strconv.FormatFloat(*usd, 'f', -1, 64)
}

// numberCell returns a number as text, or "" for 0.
func numberCell(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func yesOrNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}
