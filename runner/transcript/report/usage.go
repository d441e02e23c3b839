package report

import (
	"fmt"
	"slices"
	"strings"

	g "maragu.dev/gomponents"

	"github.com/agent-ci/agent-ci/runner/transcript"
)

func (o *overview) usageSection() g.Node {
	return section("usage", "Cost and usage", factList("facts", o.usage()))
}

func (o *overview) usage() []fact {
	v := o.View
	model := field(modelNames(v.Models))
	if v.Started.Scripted != "" {
		model = "scripted answers"
	}
	all := []fact{
		{Name: "Model", Value: model},
		{Name: "Input", Value: inputOf(v.Usage)},
		{Name: "Output", Value: fmt.Sprintf("%s tokens, %s of them reasoning", transcript.Thousands(v.Usage.Output), transcript.Thousands(v.Usage.Reasoning))},
		{Name: "Cost", Value: costOf(v)},
		{Name: "Model's time", Value: transcript.Duration(o.thinking)},
		{Name: "Calls' time", Value: transcript.Duration(o.working)},
		{Name: "Checks' time", Value: transcript.Duration(o.checking)},
	}
	for _, a := range v.Agents {
		all = append(all, fact{Name: "Agent", Value: field(a.Words(v))})
	}
	if v.Retries > 0 {
		all = append(all, fact{Name: "Repeated requests", Value: transcript.Thousands(int64(v.Retries))})
	}
	return slices.DeleteFunc(all, func(f fact) bool { return f.Value == "" })
}

func inputOf(u transcript.Usage) string {
	words := fmt.Sprintf("%s tokens, %s of them cached", transcript.Thousands(u.Input), transcript.Thousands(u.Cached))
	if u.CacheWrite > 0 {
		words += ", " + transcript.Thousands(u.CacheWrite) + " written to the cache"
	}
	return words
}

func costOf(v *transcript.View) string {
	cost, known := transcript.CostOf(v.AllModels())
	if !known {
		return "not known: no price is recorded"
	}
	return fmt.Sprintf("$%.4f", cost)
}

// modelNames are the models of a run in the order in which they were asked.
func modelNames(models []transcript.ModelUse) string {
	var names []string
	for _, m := range models {
		names = append(names, m.Model)
	}
	return strings.Join(names, ", then ")
}
