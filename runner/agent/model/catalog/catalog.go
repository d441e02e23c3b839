package catalog

import (
	_ "embed"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/runner/record/price"
)

// catalogTSV is the table that internal/tabulate makes. Each row describes one model at one provider.
//
//go:embed catalog.tsv
var catalogTSV string

// entry is the table's row of a model at one provider. Unknown fields are zero.
type entry struct {
	provider               string
	context, input, output int64
	price                  *price.List
	reasoning, images      bool
	efforts                []string
	source                 string
}

// readCatalog returns the rows of the table tsv for which wants returns true. wants gets the model's name in lower case,
// without the provider's prefix. Other rows are not parsed, since a run needs one model of hundreds.
func readCatalog(tsv string, wants func(name string) bool) ([]entry, error) {
	head, rows, _ := strings.Cut(strings.TrimSuffix(tsv, "\n"), "\n")
	columns := strings.Split(head, "\t")
	var entries []entry
	for line := range strings.SplitSeq(rows, "\n") {
		_, rest, _ := strings.Cut(line, "\t")
		name, _, _ := strings.Cut(rest, "\t")
		if !wants(bareName(name)) {
			continue
		}
		e, err := entryOf(columns, strings.Split(line, "\t"))
		if err != nil {
			return nil, fmt.Errorf("read the table of models: %s: %w", name, err)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// entryOf parses a row of the table.
func entryOf(columns, cells []string) (entry, error) {
	if len(cells) != len(columns) {
		return entry{}, fmt.Errorf("there are %d cells, not %d", len(cells), len(columns))
	}
	row := make(map[string]string, len(cells))
	for i, name := range columns {
		row[name] = cells[i]
	}
	e := entry{
		provider:  row["provider"],
		reasoning: row["reasoning"] == "yes", images: row["images"] == "yes", source: row["source"] + ", " + row["date"],
	}
	if row["efforts"] != "" {
		e.efforts = strings.Split(row["efforts"], "|")
	}
	for name, target := range map[string]*int64{"context": &e.context, "input_limit": &e.input, "output_limit": &e.output} {
		if row[name] == "" {
			continue
		}
		var err error
		if *target, err = strconv.ParseInt(row[name], 10, 64); err != nil {
			return e, err
		}
	}
	if row["price"] == "" {
		return e, nil
	}
	var err error
	e.price, err = priceListOf(row["price"], row["tiers"], row["service"])
	return e, err
}

// priceListOf parses a price list. rates has the usual rates, as INPUT/CACHED/CACHE_WRITE/OUTPUT. tiers has the rates
// for requests above some lengths, as TOKENS:RATES;TOKENS:RATES. service has those of the API's service tiers, as
// NAME:RATES;NAME:RATES.
func priceListOf(rates, tiers, service string) (*price.List, error) {
	list := new(price.List)
	var err error
	if list.Rates, err = ratesOf(rates); err != nil {
		return nil, err
	}
	for name, rates := range pairs(tiers) {
		tier := price.Tier{}
		if tier.Above, err = strconv.ParseInt(name, 10, 64); err != nil {
			return nil, err
		}
		if tier.Rates, err = ratesOf(rates); err != nil {
			return nil, err
		}
		list.Tiers = append(list.Tiers, tier)
	}
	for name, rates := range pairs(service) {
		r, err := ratesOf(rates)
		if err != nil {
			return nil, err
		}
		if list.Service == nil {
			list.Service = make(map[string]price.Rates)
		}
		list.Service[name] = r
	}
	return list, nil
}

// pairs yields the pairs of a list such as NAME:RATES;NAME:RATES.
func pairs(list string) iter.Seq2[string, string] {
	return func(yield func(name, rates string) bool) {
		for pair := range strings.SplitSeq(list, ";") {
			name, rates, found := strings.Cut(pair, ":")
			if found && !yield(name, rates) {
				return
			}
		}
	}
}

// ratesOf parses INPUT/CACHED/CACHE_WRITE/OUTPUT. An empty part means that the rate is unknown.
func ratesOf(text string) (price.Rates, error) {
	parts := strings.Split(text, "/")
	if len(parts) != 4 {
		return price.Rates{}, fmt.Errorf("%q are no rates", text)
	}
	var r price.Rates
	for i, target := range []*float64{&r.Input, &r.Cached, &r.CacheWrite, &r.Output} {
		if parts[i] == "" {
			continue
		}
		var err error
		if *target, err = strconv.ParseFloat(parts[i], 64); err != nil {
			return r, err
		}
	}
	return r, nil
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
func findEntry(name, baseURL string) (e entry, found bool) {
	provider := providerAt(baseURL)
	prefix, _, _ := strings.Cut(strings.ToLower(name), "/")
	for _, spelling := range []string{bareName(name), plainName(name)} {
		entries := rowsOf(spelling)
		if provider != "" {
			entries = entriesAt(provider, entries)
		} else if byPrefix := entriesAt(prefix, entries); len(byPrefix) > 0 {
			entries = byPrefix
		}
		if len(entries) > 0 {
			return commonFacts(entries), true
		}
	}
	return entry{}, false
}

// rowsOf returns the rows for a bare model name.
func rowsOf(name string) []entry {
	entries, err := readCatalog(catalogTSV, func(other string) bool { return other == name })
	if err != nil {
		panic(err) // the table is part of the program; a test reads it
	}
	return entries
}

// entriesAt returns those of all that are at provider.
func entriesAt(provider string, all []entry) []entry {
	return slices.DeleteFunc(slices.Clone(all), func(e entry) bool { return e.provider != provider })
}

// commonFacts returns the facts that hold at every provider: the smallest limits, and the price and efforts if all
// providers have the same.
func commonFacts(entries []entry) entry {
	common := entries[0]
	for _, e := range entries[1:] {
		common.context, common.input, common.output = smallerLimit(common.context, e.context), smallerLimit(common.input, e.input), smallerLimit(common.output, e.output)
		common.reasoning, common.images = common.reasoning && e.reasoning, common.images && e.images
		if !slices.Equal(common.efforts, e.efforts) {
			common.efforts = nil
		}
		common.price = price.CommonPrices(common.price, e.price)
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
func (e entry) window() int64 {
	window := smallerLimit(e.context, e.input)
	if e.price.Known() {
		for _, tier := range e.price.Tiers {
			window = smallerLimit(window, tier.Above)
		}
	}
	return window
}

// applyTo returns a family's profile with the limits and prices of the entry. It keeps a context window that the
// profile sets itself.
func (e entry) applyTo(p Profile) Profile {
	if p.ContextWindow == profiles().Default.ContextWindow {
		p.ContextWindow = e.window()
	}
	p.InputLimit, p.OutputLimit = smallerLimit(p.InputLimit, e.input), smallerLimit(p.OutputLimit, e.output)
	p.Reasoning, p.Images = e.reasoning, e.images
	if p.Efforts == nil {
		p.Efforts = e.efforts
	}
	p.Price = e.price.WithCacheWrites(p.CacheWrite)
	if p.Source == "" {
		p.Source = e.source
	}
	return p
}
