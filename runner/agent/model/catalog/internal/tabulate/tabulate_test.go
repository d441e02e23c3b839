package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// TestTableIsUpToDate holds that nobody edits the table by hand.
func TestTableIsUpToDate(t *testing.T) {
	const root = "../../../../../.."
	raw := must.Get(os.ReadFile(filepath.Join(root, sourceFile)))(t)
	want := must.Get(catalogOf(raw))(t)
	got := must.Get(os.ReadFile(filepath.Join(root, catalogFile)))(t)
	must.Same(t, strings.Split(string(want), "\n"), strings.Split(string(got), "\n"), catalogFile, "is not what make models makes of", sourceFile, "run it")
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

// made is what the command makes of models of openai: their rows in both tables.
func made(t *testing.T, models string) (sourceRows, catalogRows []string, err error) {
	t.Helper()
	root := t.TempDir()
	for _, file := range []string{sourceFile, catalogFile} {
		must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o700))
	}
	if err := run(root, api(t, models), source{"abc", "2026-07-02"}); err != nil {
		return nil, nil, err
	}
	rows := func(file string) (rows []string) {
		raw := must.Get(os.ReadFile(filepath.Join(root, file)))(t)
		for _, line := range strings.Split(string(raw), "\n") {
			if strings.HasPrefix(line, "openai\t") {
				rows = append(rows, line)
			}
		}
		return rows
	}
	return rows(sourceFile), rows(catalogFile), nil
}

func TestConvertsModelsDev(t *testing.T) {
	const whole = `"gpt": {"tool_call": true, "reasoning": true, "reasoning_options": [{"type": "effort", "values": [null, "low", "high"]}], "release_date": "2026-01-02",
		"cost": {"input": 2.50, "output": 15, "cache_read": 0.25, "cache_write": 3, "tiers": [{"tier": {"size": 272000}, "input": 5, "output": 22.5}]},
		"limit": {"context": 400000, "input": 272000, "output": 128000}, "modalities": {"input": ["text", "image"]},
		"experimental": {"modes": {"fast": {"cost": {"input": 5, "output": 30}, "provider": {"body": {"service_tier": "priority"}}}, "odd": {"cost": {"input": 1}}}}}`
	for _, test := range []struct {
		name, model     string
		source, catalog string // behind the provider's name; empty: none
	}{
		{
			"all of it", whole,
			"gpt\t400000\t272000\t128000\t2.5/0.25/3/15\t\t272000:5///22.5\tpriority:5///30\tyes\tlow|high\tyes\t2026-01-02\t\tmodels.dev abc\t2026-07-02",
			"gpt\t400000\t272000\t128000\t2.5/0.25/3/15\t272000:5///22.5\tpriority:5///30\tyes\tlow|high\tyes\tmodels.dev abc\t2026-07-02",
		},
		{
			"no price", `"free": {"tool_call": true, "limit": {"context": 1000}}`,
			"free\t1000\t\t\t\t\t\t\tno\t\tno\t\t\tmodels.dev abc\t2026-07-02", "free\t1000\t\t\t\t\t\tno\t\tno\tmodels.dev abc\t2026-07-02",
		},
		{
			"a price of nothing", `"free": {"tool_call": true, "limit": {"context": 1000}, "cost": {"input": 0, "output": 0}}`,
			"free\t1000\t\t\t0///0\t\t\t\tno\t\tno\t\t\tmodels.dev abc\t2026-07-02", "free\t1000\t\t\t0///0\t\t\tno\t\tno\tmodels.dev abc\t2026-07-02",
		},
		{
			"a router, behind which another model is paid", `"r": {"tool_call": true, "limit": {"context": 1000}, "cost": {"input": 0.14, "output": 0}}`,
			"r\t1000\t\t\t0.14///0\t\t\t\tno\t\tno\t\t\tmodels.dev abc\t2026-07-02", "r\t1000\t\t\t\t\t\tno\t\tno\tmodels.dev abc\t2026-07-02",
		},
		{
			"thoughts that cost otherwise", `"q": {"tool_call": true, "limit": {"context": 1000}, "cost": {"input": 0.4, "output": 1.2, "reasoning": 4}}`,
			"q\t1000\t\t\t0.4///1.2\t4\t\t\tno\t\tno\t\t\tmodels.dev abc\t2026-07-02", "q\t1000\t\t\t\t\t\tno\t\tno\tmodels.dev abc\t2026-07-02",
		},
		{"no tools", `"embedding": {"limit": {"context": 1000}, "cost": {"input": 1, "output": 1}}`, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			sourceRows, catalogRows, err := made(t, test.model)
			must.Do(t, err)
			for _, each := range []struct {
				want string
				got  []string
			}{{test.source, sourceRows}, {test.catalog, catalogRows}} {
				var want []string
				if each.want != "" {
					want = []string{"openai\t" + each.want}
				}
				must.Same(t, want, each.got)
			}
		})
	}
}

func TestRefusesUnknownRates(t *testing.T) {
	for models, want := range map[string]string{
		`"x": {"tool_call": true, "limit": {"context": 1}, "cost": {"tiers": [{"tier": {"type": "hour", "size": 3}}]}}`: "by hour",
		`"x": {"tool_call": true}`: "it has no context",
		``:                         "no models of openai",
	} {
		if _, _, err := made(t, models); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", models, err, want)
		}
	}
	must.Fail(t, "-commit and -date", run(t.TempDir(), api(t, ""), source{}), "rows that do not say where they are from")
	must.Fail(t, "", must.Err(catalogOf([]byte("provider\tmodel\n"))), "other columns are read")
}
