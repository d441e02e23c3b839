package provider

import (
	"reflect"

	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// fallbacks returns the job's fallback models with their profiles. A run's tools are fixed, so
// every fallback must suit the same tools.
func fallbacks(first Known, profiles Profiles, j *job.Job, warn Warn) ([]Known, error) {
	of := *j
	of.Model.ContextWindow, of.Model.Price = 0, job.Price{} // those of the first
	tools := ToolsetOf(first.Profile, j.Model.Tools)
	var all []Known
	for _, name := range j.Model.Fallbacks {
		next, err := knownModel(name, profiles, &of, warn)
		if err != nil {
			return nil, err
		}
		if other := ToolsetOf(next.Profile, j.Model.Tools); !reflect.DeepEqual(tools, other) {
			return nil, outcome.Stopf(outcome.InvalidInput, "fallback_tools",
				"model.fallbacks has %s, which takes other tools (%s) than %s does (%s), and a run keeps its tools; name a model that takes the same.",
				name, other, first.Name, tools)
		}
		all = append(all, next)
	}
	return all, nil
}

// Searches says whether each of the models looks for tools by the API's own tool_search.
func (m Model) Searches() bool {
	for _, next := range m.Fallbacks {
		if !next.Profile.ToolSearch {
			return false
		}
	}
	return m.Profile.ToolSearch
}
