package catalog

import (
	_ "embed"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/record/price"
)

// catalogJSON is the table that internal/tabulate makes. Each row is a line, and begins with the provider and the model.
//
//go:embed catalog.json
var catalogJSON string

// Entry is a row of the table: a model at one provider. Unknown facts are zero.
type Entry struct {
	Provider  string      `json:"provider"`
	Model     string      `json:"model"` // the provider's name for it
	Context   int64       `json:"context"`
	Input     int64       `json:"input_limit,omitempty"`
	Output    int64       `json:"output_limit,omitempty"`
	Price     *price.List `json:"price,omitempty"`
	Reasoning bool        `json:"reasoning,omitempty"`
	Efforts   []string    `json:"efforts,omitempty"`
	Images    bool        `json:"images,omitempty"`
	Source    string      `json:"source"`
}

// providerByHost maps the hosts of APIs to providers in the table. A name with a leading dot stands for its direct subdomains.
var providerByHost = map[string]string{
	"api.openai.com":                    "openai",
	".openai.azure.com":                 "azure",
	".services.ai.azure.com":            "azure",
	".cognitiveservices.azure.com":      "azure",
	"api.anthropic.com":                 "anthropic",
	"api.cerebras.ai":                   "cerebras",
	"api.deepseek.com":                  "deepseek",
	"api.groq.com":                      "groq",
	"api.minimax.io":                    "minimax",
	"api.mistral.ai":                    "mistral",
	"api.moonshot.ai":                   "moonshotai",
	"api.x.ai":                          "xai",
	"api.z.ai":                          "zai",
	"dashscope-intl.aliyuncs.com":       "alibaba",
	"generativelanguage.googleapis.com": "google",
}

// providerAt returns the provider of the API at baseURL, or "" if the table has none. An empty address means OpenAI.
func providerAt(baseURL string) string {
	if baseURL == "" {
		return "openai"
	}
	u, err := url.Parse(baseURL)
	if err != nil {
		return ""
	}
	host := strings.ToLower(u.Hostname())
	_, parent, _ := strings.Cut(host, ".")
	if provider, known := providerByHost[host]; known {
		return provider
	}
	return providerByHost["."+parent]
}

// findEntry returns the table's entry for a model at the API at baseURL: the row of the API's provider. If the
// provider is unknown, it uses the row of the provider in the name's prefix, or else the facts that all providers
// share. Only whole names match.
func findEntry(name, baseURL string) (e Entry, found bool) {
	provider := providerAt(baseURL)
	prefix, _, _ := strings.Cut(strings.ToLower(name), "/")
	for _, spelling := range []string{bareName(name), plainName(name)} {
		entries := rowsOf(spelling, provider)
		if provider == "" {
			if byPrefix := rowsOf(spelling, prefix); len(byPrefix) > 0 {
				entries = byPrefix
			}
		}
		if len(entries) > 0 {
			return commonFacts(entries), true
		}
	}
	return Entry{}, false
}

// rowsOf returns the rows for a bare model name at a provider. An empty provider means all. It decodes no other row,
// because a run needs few and all of them take a millisecond.
func rowsOf(name, provider string) (rows []Entry) {
	for line := range strings.Lines(catalogJSON) {
		_, facts, _ := strings.Cut(line, `{"provider":"`) // azure","model":"gpt-5",
		by, facts, _ := strings.Cut(facts, `","model":"`)
		model, _, isRow := strings.Cut(facts, `"`)
		if !isRow || provider != "" && by != provider || bareName(model) != name {
			continue
		}
		var row Entry
		if err := json.Unmarshal([]byte(strings.TrimRight(line, ",\n")), &row); err != nil {
			panic(err) // the table is part of the program; a test reads it
		}
		rows = append(rows, row)
	}
	return rows
}

// commonFacts returns the facts that hold at every provider: the smallest limits, and the price and efforts if all
// providers have the same.
func commonFacts(entries []Entry) Entry {
	common := entries[0]
	for _, e := range entries[1:] {
		common.Context, common.Input, common.Output = smallerLimit(common.Context, e.Context), smallerLimit(common.Input, e.Input), smallerLimit(common.Output, e.Output)
		common.Reasoning, common.Images = common.Reasoning && e.Reasoning, common.Images && e.Images
		if !slices.Equal(common.Efforts, e.Efforts) {
			common.Efforts = nil
		}
		common.Price = price.CommonPrices(common.Price, e.Price)
	}
	return common
}

// smallerLimit returns the smaller of two limits. 0 means no limit.
func smallerLimit(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// window returns the maximum length of a conversation, in tokens: the model's limit, or the length from which a
// higher price applies, if that is less.
func (e Entry) window() int64 {
	window := smallerLimit(e.Context, e.Input)
	if e.Price != nil {
		for _, tier := range e.Price.Tiers {
			window = smallerLimit(window, tier.Above)
		}
	}
	return window
}

// applyTo returns a family's profile with the limits and prices of the entry. It keeps a context window that the
// profile sets itself.
func (e Entry) applyTo(p Profile) Profile {
	if p.ContextWindow == profiles().Default.ContextWindow {
		p.ContextWindow = e.window()
	}
	p.InputLimit, p.OutputLimit = smallerLimit(p.InputLimit, e.Input), smallerLimit(p.OutputLimit, e.Output)
	p.Reasoning, p.Images = e.Reasoning, e.Images
	if p.Efforts == nil {
		p.Efforts = e.Efforts
	}
	p.Price = e.Price.WithCacheWrites(p.CacheWrite)
	if p.Source == "" {
		p.Source = e.Source
	}
	return p
}
