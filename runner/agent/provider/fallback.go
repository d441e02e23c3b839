package provider

import (
	"reflect"
	"slices"

	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// fallbacks returns the job's fallback models with their profiles. It returns an error if a fallback needs other
// tools than the first model, because a run keeps its tools.
func fallbacks(first ProfiledModel, profiles Profiles, j *job.Job, warn Warn) ([]ProfiledModel, error) {
	fallbackJob := *j
	fallbackJob.Model.ContextWindow, fallbackJob.Model.Price = 0, job.Price{} // these settings are about the first model
	toolset := ToolsetOf(first.Profile, j.Model.Tools)
	var all []ProfiledModel
	for _, name := range j.Model.Fallbacks {
		next, err := profiledModel(name, profiles, &fallbackJob, warn)
		if err != nil {
			return nil, err
		}
		if other := ToolsetOf(next.Profile, j.Model.Tools); !reflect.DeepEqual(toolset, other) {
			return nil, outcome.Stopf(outcome.InvalidInput, "fallback_tools",
				"model.fallbacks has %s, which takes other tools (%s) than %s does (%s), and a run keeps its tools; name a model that takes the same.",
				name, other, first.Name, toolset)
		}
		all = append(all, next)
	}
	return all, nil
}

// SupportsToolSearch reports whether all of the models support the API's own tool_search.
func (m Model) SupportsToolSearch() bool {
	lacksSearch := func(m ProfiledModel) bool { return !m.Profile.ToolSearch }
	return m.Profile.ToolSearch && !slices.ContainsFunc(m.Fallbacks, lacksSearch)
}
