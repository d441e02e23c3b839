package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent/model/catalog"
)

// TestTableIsWrittenByTheCommand holds that nobody edits the table by hand into another form.
func TestTableIsWrittenByTheCommand(t *testing.T) {
	got := must.Get(os.ReadFile(filepath.Join("../../../../../..", catalogFile)))(t)
	var rows []catalog.Entry
	must.Do(t, json.Unmarshal(got, &rows))
	want := must.Get(encode(rows))(t)
	must.Same(t, strings.Split(string(want), "\n"), strings.Split(string(got), "\n"), catalogFile, "is not in the form of make models")
}

// api is an api.json with a model of each provider, and those of one.
func api(t *testing.T, models string) string {
	t.Helper()
	all := make([]string, len(providers))
	for i, provider := range providers {
		all[i] = `"` + provider + `": {"models": {"m": {"tool_call": true, "limit": {"context": 1000}}}}`
	}
	path := filepath.Join(t.TempDir(), "api.json")
	must.Do(t, os.WriteFile(path, []byte("{"+strings.Join(all, ",")+`,"openai": {"models": {`+models+"}}}"), 0o600))
	return path
}

// made is what the command makes of models of openai: their rows in the table.
func made(t *testing.T, models string) (rows []string, err error) {
	t.Helper()
	root := t.TempDir()
	must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(root, catalogFile)), 0o700))
	if err := run(root, api(t, models), source{"abc", "2026-07-02"}); err != nil {
		return nil, err
	}
	raw := must.Get(os.ReadFile(filepath.Join(root, catalogFile)))(t)
	for _, line := range strings.Split(string(raw), "\n") {
		if strings.HasPrefix(line, `{"provider":"openai",`) {
			rows = append(rows, strings.TrimSuffix(line, ","))
		}
	}
	return rows, nil
}

func TestConvertsModelsDev(t *testing.T) {
	const whole = `"gpt": {"tool_call": true, "reasoning": true, "reasoning_options": [{"type": "effort", "values": [null, "low", "high"]}], "release_date": "2026-01-02",
		"cost": {"input": 2.50, "output": 15, "cache_read": 0.25, "cache_write": 3, "tiers": [{"tier": {"size": 272000}, "input": 5, "output": 22.5}]},
		"limit": {"context": 400000, "input": 272000, "output": 128000}, "modalities": {"input": ["text", "image"]},
		"experimental": {"modes": {"fast": {"cost": {"input": 5, "output": 30}, "provider": {"body": {"service_tier": "priority"}}}, "odd": {"cost": {"input": 1}}}}}`
	for _, test := range []struct {
		name, model string
		want        string // behind the provider's name and before the source; empty: no row
	}{
		{
			"all of it", whole,
			`"model":"gpt","context":400000,"input_limit":272000,"output_limit":128000,"price":{"input":2.5,"cached":0.25,"cache_write":3,"output":15,` +
				`"tiers":[{"above":272000,"input":5,"cached":0,"output":22.5}],"service":{"priority":{"input":5,"cached":0,"output":30}}},"reasoning":true,"efforts":["low","high"],"images":true`,
		},
		{"no price", `"free": {"tool_call": true, "limit": {"context": 1000}}`, `"model":"free","context":1000`},
		{
			"a price of nothing", `"free": {"tool_call": true, "limit": {"context": 1000}, "cost": {"input": 0, "output": 0}}`,
			`"model":"free","context":1000,"price":{"input":0,"cached":0,"output":0}`,
		},
		{
			"a router, behind which another model is paid", `"r": {"tool_call": true, "limit": {"context": 1000}, "cost": {"input": 0.14, "output": 0}}`,
			`"model":"r","context":1000`,
		},
		{
			"thoughts that cost otherwise", `"q": {"tool_call": true, "limit": {"context": 1000}, "cost": {"input": 0.4, "output": 1.2, "reasoning": 4}}`,
			`"model":"q","context":1000`,
		},
		{
			"thoughts that cost the same", `"q": {"tool_call": true, "limit": {"context": 1000}, "cost": {"input": 0.4, "output": 1.2, "reasoning": 1.2}}`,
			`"model":"q","context":1000,"price":{"input":0.4,"cached":0,"output":1.2}`,
		},
		{"half a price", `"h": {"tool_call": true, "limit": {"context": 1000}, "cost": {"input": 0}}`, `"model":"h","context":1000`},
		{"no tools", `"embedding": {"limit": {"context": 1000}, "cost": {"input": 1, "output": 1}}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var want []string
			if test.want != "" {
				want = []string{`{"provider":"openai",` + test.want + `,"source":"models.dev abc, 2026-07-02"}`}
			}
			must.Same(t, want, must.Get(made(t, test.model))(t))
		})
	}
}

func TestRefusesUnknownRates(t *testing.T) {
	for models, want := range map[string]string{
		`"x": {"tool_call": true, "limit": {"context": 1}, "cost": {"tiers": [{"tier": {"type": "hour", "size": 3}}]}}`: "by hour",
		`"x": {"tool_call": true}`: "it has no context",
		``:                         "no models of openai",
	} {
		if _, err := made(t, models); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", models, err, want)
		}
	}
	must.Fail(t, "-commit and -date", run(t.TempDir(), api(t, ""), source{}), "rows that do not say where they are from")
}
