package provider

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/catalog"
	"github.com/agent-ci/agent-ci/runner/agent/model/modeltest"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/record/price"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
	"github.com/agent-ci/agent-ci/tools"
)

// warnings keeps the codes of what people are warned of.
type warnings []string

func (w *warnings) warn(code, _ string, _ ...any) { *w = append(*w, code) }

func TestJobAdjustsProfile(t *testing.T) {
	known := catalog.ProfileOf("gpt-5")
	unknown := catalog.ProfileOf("foo3")
	auto := job.Model{Tools: "auto"}
	for _, test := range []struct {
		name  string
		model func(*job.Model)
		want  func(*catalog.Profile)
		warns bool
	}{
		{"a model that is known", func(m *job.Model) { m.Name = "gpt-5" }, func(p *catalog.Profile) { *p = known }, false},
		{"one that is not", func(*job.Model) {}, func(*catalog.Profile) {}, true},
		{"its window alone", func(m *job.Model) { m.ContextWindow = 9000 }, func(p *catalog.Profile) { p.ContextWindow = 9000 }, true},
		{"its tools alone", func(m *job.Model) { m.Tools = "function" }, func(*catalog.Profile) {}, true},
		{"both", func(m *job.Model) { m.ContextWindow, m.Tools = 9000, "function" }, func(p *catalog.Profile) { p.ContextWindow = 9000 }, false},
		{
			"an API without other tools", func(m *job.Model) { m.Name, m.Wire = "gpt-5", "chat" },
			func(p *catalog.Profile) { *p = known; p.Patch, p.Shell = "function", "function" }, false,
		},
		{"a price", func(m *job.Model) { m.Price.Output = 3 }, func(p *catalog.Profile) { p.Price = &price.List{Rates: price.Rates{Output: 3}} }, true},
		{"no price in the place of one", func(m *job.Model) { m.Name, m.Price.Cached = "gpt-5", 3 }, func(p *catalog.Profile) { *p = known }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			j := &job.Job{Model: auto}
			j.Model.Name = "foo3"
			test.model(&j.Model)
			want := unknown
			test.want(&want)
			var warned warnings
			got := must.Get(New(nil, j, catalog.ProfileOf, warned.warn))(t)
			must.Same(t, want, got.Profile)
			must.Same(t, test.warns, len(warned) > 0, "warned", warned)
		})
	}
}

func TestCostLimitNeedsPrice(t *testing.T) {
	listed := catalog.ProfileOf("gpt-5.4").Price
	for _, test := range []struct {
		name   string
		model  job.Model
		limit  float64
		env    settings.Environment
		want   *price.List
		warned warnings
		reason string // of the refusal; empty for none
	}{
		{"a price that the table has", job.Model{Name: "gpt-5.4"}, 5, nil, listed, nil, ""},
		{"another limit at that", job.Model{Name: "gpt-5.4"}, 0.5, nil, listed, nil, ""},
		{"the default without a price", job.Model{Name: "gpt-6-sol"}, 5, nil, nil, warnings{"no_price"}, ""},
		{"another without a price", job.Model{Name: "gpt-6-sol"}, 4, nil, nil, nil, "no_price"},
		{"no limit", job.Model{Name: "gpt-6-sol"}, 0, nil, nil, nil, ""},
		{
			"the job's price, with writes to the cache",
			job.Model{Name: "gpt-6-sol", Price: job.Price{Input: 4, Output: 20}},
			5, nil,
			&price.List{Rates: price.Rates{Input: 4, CacheWrite: 5, Output: 20}}, nil, "",
		},
		{"the job's price before the table's", job.Model{Name: "gpt-5.4", Price: job.Price{Output: 3}}, 5, nil, &price.List{Rates: price.Rates{Output: 3}}, nil, ""},
		{"the provider of the job's address", job.Model{Name: "gpt-5-mini", BaseURL: "https://x.openai.azure.com/openai/v1"}, 5, nil, &price.List{Rates: price.Rates{Input: 0.25, Cached: 0.03, Output: 2}}, nil, ""},
		{
			"that of the environment's",
			job.Model{Name: "gpt-5-mini"},
			5,
			settings.Environment{"OPENAI_BASE_URL=https://x.openai.azure.com/openai/v1"},
			&price.List{Rates: price.Rates{Input: 0.25, Cached: 0.03, Output: 2}}, nil, "",
		},
		{"an address where nobody knows", job.Model{Name: "gpt-5-mini", BaseURL: "https://models.example.com/v1"}, 5, nil, nil, warnings{"no_price"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			j := &job.Job{Model: test.model, Limits: job.Limits{CostUSD: test.limit}}
			var warned warnings
			got, err := New(nil, j, ProfilesFor(j, test.env), warned.warn)
			if test.reason != "" {
				outcometest.Want(t, err, "invalid_input/"+test.reason, "give it as model.price")
				return
			}
			must.Do(t, err)
			must.Same(t, test.want, got.Profile.Price, "price")
			must.Same(t, test.warned, warned, "warnings")
		})
	}
}

func TestWarnsOfSettingsAPIMayRefuse(t *testing.T) {
	for _, test := range []struct {
		name  string
		model job.Model
		want  warnings
	}{
		{"what the model takes", job.Model{Name: "gpt-5.4", ReasoningEffort: "xhigh", MaxOutputTokens: 128_000, ContextWindow: 922_000}, nil},
		{"an effort that it does not take", job.Model{Name: "gpt-5-pro", ReasoningEffort: "medium"}, warnings{"reasoning_effort"}},
		{"one that Codex does not offer", job.Model{Name: "gpt-6.1-sol", ReasoningEffort: "minimal"}, warnings{"reasoning_effort"}},
		{"no effort", job.Model{Name: "gpt-5-pro"}, nil},
		{"an effort for a model that does not reason", job.Model{Name: "gpt-4.1", ReasoningEffort: "medium"}, nil},
		{"efforts that are not known", job.Model{Name: "gpt-6-luna", ReasoningEffort: "minimal"}, nil},
		{"a longer answer", job.Model{Name: "gpt-5.4", MaxOutputTokens: 128_001}, warnings{"output_limit"}},
		{"a longer conversation", job.Model{Name: "gpt-5.4", ContextWindow: 922_001}, warnings{"input_limit"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var warned warnings
			must.Get(New(nil, &job.Job{Model: test.model}, catalog.ProfileOf, warned.warn))(t)
			must.Same(t, test.want, warned, "warnings")
		})
	}
}

func TestScriptedSessionIsFree(t *testing.T) {
	path := modeltest.Session(t, "version: 1\nturns: [{output: [{say: One.}]}]\n")
	j := &job.Job{Model: job.Model{Name: "gpt-5.4"}, Limits: job.Limits{CostUSD: job.DefaultCostUSD}}
	got, err := Scripted(t.Context(), path, 0, j)
	if err != nil || got.Profile.Price != nil {
		t.Errorf("price %v, %v", got.Profile.Price, err)
	}
	j.Model.Price.Input = 2
	if got, err = Scripted(t.Context(), path, 0, j); err != nil || got.Profile.Price == nil {
		t.Errorf("the job's price %v, %v", got.Profile.Price, err)
	}
}

func TestScriptedSessionEnds(t *testing.T) {
	j := &job.Job{Model: job.Model{Name: "nobody-knows", Tools: "auto"}}
	got := must.Get(Scripted(t.Context(), modeltest.Session(t, "version: 1\nturns: [{output: [{say: One.}]}, {output: [{say: Two.}]}]\n"), 0, j))(t)
	for i := range 2 {
		if !got.HasAnswers() {
			t.Fatalf("it has %d answers", i)
		}
		must.Get(got.Respond(t.Context(), model.Request{}, model.NoObserver{}))(t)
	}
	must.Same(t, false, got.HasAnswers(), "it has more than two answers")
}

func TestRefusesBrokenScriptedSession(t *testing.T) {
	j := &job.Job{}
	large := filepath.Join(t.TempDir(), "large.yml")
	must.Do(t, os.WriteFile(large, nil, 0o600))
	if err := os.Truncate(large, maxScriptBytes+1); err != nil { // it takes no room
		t.Fatal(err)
	}
	_, err := Scripted(t.Context(), large, 0, j)
	must.Fail(t, fmt.Sprintf("it has more than %d bytes", maxScriptBytes), err)
	_, err = Scripted(t.Context(), filepath.Join(t.TempDir(), "none.yml"), 0, j)
	must.Fail(t, "none.yml", err)
	_, err = Scripted(t.Context(), modeltest.Session(t, "version: 2\n"), 0, j)
	outcometest.Want(t, err, "invalid_input/scripted_session", "Read scripted session session.yml: version is 2")
}

func TestScriptCallsByModel(t *testing.T) {
	made := catalog.Profile{Code: true, Commands: "shell", Shell: "local_shell", Patch: "function"}
	for _, test := range []struct {
		form string
		p    catalog.Profile
		m    job.Model
		want bool
	}{
		{"auto", made, job.Model{}, true},
		{"auto", catalog.Profile{}, job.Model{}, false},
		{"code", catalog.Profile{}, job.Model{}, true},
		{"freeform", made, job.Model{}, false},
		{"auto", made, job.Model{Wire: "chat"}, false},
	} {
		s := ToolsetOf(adjustedProfile(test.p, test.m), test.form)
		if s.Code != test.want || s.Code && (s.CommandTools[0] != "exec_command" || s.Patch != tools.Freeform) {
			t.Errorf("%+v: %+v", test, s)
		}
	}
}
