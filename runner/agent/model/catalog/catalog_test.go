package catalog

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/price"
)

func TestReadsTable(t *testing.T) {
	var table []Entry
	must.Do(t, json.Unmarshal([]byte(catalogJSON), &table))
	must.Same(t, 279, len(table))
	for _, e := range table {
		if e.Context <= 0 || !strings.Contains(e.Source, "models.dev ") || e.Price != nil && (e.Price.Input > 0) != (e.Price.Output > 0) {
			t.Errorf("%+v", e)
		}
		rows := rowsOf(bareName(e.Model), e.Provider)
		if !slices.ContainsFunc(rows, func(row Entry) bool { return reflect.DeepEqual(row, e) }) {
			t.Errorf("%+v is not among %+v", e, rows)
		}
	}
}

// TestKnowsCodexModels has the models that Codex offers: there is no price of those that are
// newer than the table.
func TestKnowsCodexModels(t *testing.T) {
	direct := Profile{Commands: "exec_command", Shell: "function", Patch: "freeform", Reasoning: true, ToolSearch: true, Images: true}
	code := direct
	code.Code, code.InputLimit, code.CacheWrite, code.ContextWindow = true, 872_000, 1.25, 272_000
	efforts := []string{"low", "medium", "high", "xhigh", "max", "ultra"}
	five := func(name string, p *price.List) Profile {
		five := direct
		five.ContextWindow, five.InputLimit, five.OutputLimit = 272_000, 922_000, 128_000
		five.Efforts, five.Price = []string{"none", "low", "medium", "high", "xhigh"}, p
		if name == "gpt-5.5" {
			five.DefaultEffort = "medium"
		}
		return five
	}
	as := func(p Profile, window int64, effort string, efforts []string) Profile {
		p.ContextWindow, p.DefaultEffort, p.Efforts = window, effort, efforts
		return p
	}
	for name, want := range map[string]Profile{
		"gpt-6.1-sol":          as(code, 272_000, "low", efforts),
		"gpt-6-astra":          as(code, 272_000, "low", efforts),
		"gpt-6-sol":            as(code, 272_000, "medium", efforts),
		"gpt-6-sol-2026-10-01": as(code, 272_000, "medium", efforts),
		"gpt-6.1-terra":        as(code, 500_000, "low", []string{}),
		"gpt-6-luna":           as(code, 272_000, "medium", []string{}),
		"gpt-5.6-sol":          as(code, 272_000, "low", []string{}),
		"gpt-5.6-terra":        as(code, 272_000, "medium", []string{}),
		"gpt-5.6-luna":         as(code, 272_000, "medium", []string{}),
		"gpt-5.5": five("gpt-5.5", &price.List{
			Rates:   price.Rates{Input: 5, Cached: 0.5, Output: 30},
			Tiers:   []price.Tier{{Above: 272_000, Rates: price.Rates{Input: 10, Cached: 1, Output: 45}}},
			Service: map[string]price.Rates{"priority": {Input: 12.5, Cached: 1.25, Output: 75}},
		}),
		"gpt-5.4": five("gpt-5.4", &price.List{
			Rates:   price.Rates{Input: 2.5, Cached: 0.25, Output: 15},
			Tiers:   []price.Tier{{Above: 272_000, Rates: price.Rates{Input: 5, Cached: 0.5, Output: 22.5}}},
			Service: map[string]price.Rates{"priority": {Input: 5, Cached: 0.5, Output: 30}},
		}),
	} {
		got := ProfileOf(name)
		must.Same(t, true, got.Known(), name, "is not known")
		got.Models, got.Source = nil, ""
		must.Same(t, want, got, name)
	}
	later := ProfileOf("gpt-6.2")
	if later.Price != nil || later.CacheWrite != 1.25 || later.Code {
		t.Errorf("of a later model too much is known: %+v", later)
	}
}

func TestPricesDependOnProvider(t *testing.T) {
	rates := func(input, cached, output float64) *price.List {
		return &price.List{Rates: price.Rates{Input: input, Cached: cached, Output: output}}
	}
	const elsewhere = "https://models.example.com/v1"
	for _, test := range []struct {
		name, model, baseURL string
		want                 *price.List
	}{
		{"OpenAI's own API", "gpt-5-mini", "", rates(0.25, 0.025, 2)},
		{"the same by its address", "gpt-5-mini", "https://API.openai.com/v1/", rates(0.25, 0.025, 2)},
		{"Azure", "gpt-5-mini", "https://widgets.openai.azure.com/openai/v1", rates(0.25, 0.03, 2)},
		{"a deployment with a name of its own", "our-gpt-5-mini", "https://widgets.openai.azure.com/openai/v1", nil},
		{"an unknown endpoint, where providers disagree", "gpt-5-mini", elsewhere, nil},
		{"one where the name says whose it is", "azure/gpt-5-mini", elsewhere, rates(0.25, 0.03, 2)},
		{"one where all agree", "gpt-5.1-codex", elsewhere, rates(1.25, 0.125, 10)},
		{"one where they agree but for a tier of service", "gpt-5.4-mini", elsewhere, &price.List{Rates: price.Rates{Input: 0.75, Cached: 0.075, Output: 4.5}}},
		{"one at this machine", "gpt-5.1-codex", "http://127.0.0.1:8080/v1", rates(1.25, 0.125, 10)},
		{"a host that only looks like one", "gpt-5-mini", "https://openai.azure.com.example.com/v1", nil},
		{"a region, whose prices are others", "gpt-5-mini", "https://eu.api.openai.com/v1", nil},
		{"another provider's model", "deepseek-chat", "", nil},
		{"a provider of open models", "openai/gpt-oss-120b", "https://api.groq.com/openai/v1", rates(0.15, 0.075, 0.6)},
		{"such a model anywhere", "openai/gpt-oss-120b", elsewhere, nil},
		{"a date", "gpt-5-mini-2025-08-07", "", rates(0.25, 0.025, 2)},
		{"a date that has a price of its own", "gpt-4o-2024-05-13", "", rates(5, 0, 15)},
		{"capital letters", "MiniMax-M2", "https://api.minimax.io/v1", ProfileAt("minimax-m2", "https://api.minimax.io/v1").Price},
		{"free", "glm-4.7-flash", "https://api.z.ai/api/paas/v4", new(price.List)},
		{"a router behind which a model is paid", "model-router", "https://widgets.openai.azure.com/openai/v1", nil},
		{"newer than the table", "gpt-6.1-sol", "", nil},
		{"nobody's", "foo3", "", nil},
	} {
		must.Same(t, test.want, ProfileAt(test.model, test.baseURL).Price, test.name)
	}
}

func TestKnowsLimitsOfModels(t *testing.T) {
	for _, test := range []struct {
		model, baseURL                string
		window, input, output         int64
		known, reasons, sees, reckons bool // reckons: efforts are known
	}{
		{"gpt-5-pro", "", 272_000, 272_000, 272_000, true, true, true, true},
		{"gpt-5.3-codex-spark", "", 100_000, 100_000, 32_000, true, true, true, true},
		{"gpt-4", "", 8192, 0, 8192, true, false, false, false},
		{"o3-mini", "", 200_000, 0, 100_000, true, true, false, true},
		{"gpt-5.4-pro", "", 272_000, 922_000, 128_000, true, true, true, true},
		{"deepseek-chat", "https://api.deepseek.com", 1_000_000, 0, 384_000, true, false, false, false},
		{"gemini-2.5-pro", "https://generativelanguage.googleapis.com/v1beta/openai", 200_000, 0, 65_536, true, true, true, false},
		{"gpt-5", "https://models.example.com", 272_000, 272_000, 128_000, true, true, true, true},
		{"foo3", "", 128_000, 0, 0, false, true, true, false},
	} {
		p := ProfileAt(test.model, test.baseURL)
		if p.ContextWindow != test.window || p.InputLimit != test.input || p.OutputLimit != test.output || p.Known() != test.known ||
			p.Reasoning != test.reasons || p.Images != test.sees || len(p.Efforts) > 0 != test.reckons {
			t.Errorf("%s: %+v", test.model, p)
		}
	}
	must.Same(t, []string{"high"}, ProfileOf("gpt-5-pro").Efforts, "gpt-5-pro takes the efforts")
}
