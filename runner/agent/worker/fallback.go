package worker

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// fallbacks returns the job's fallback models with their profiles. A run's tools are fixed, so
// every fallback must suit the same tools.
func fallbacks(first Known, profiles Profiles, j *job.Job, warn Warn) ([]Known, error) {
	of := *j
	of.Model.ContextWindow, of.Model.Price = 0, job.Price{} // those of the first
	tools := toolsetOf(first.Profile, j.Model.Tools)
	var all []Known
	for _, name := range j.Model.Fallbacks {
		next, err := know(name, profiles, &of, warn)
		if err != nil {
			return nil, err
		}
		if other := toolsetOf(next.Profile, j.Model.Tools); !reflect.DeepEqual(tools, other) {
			return nil, outcome.Stopf(outcome.InvalidInput, "fallback_tools",
				"model.fallbacks has %s, which takes other tools (%s) than %s does (%s), and a run keeps its tools; name a model that takes the same.",
				name, other, first.Name, tools)
		}
		all = append(all, next)
	}
	return all, nil
}

// String names the tools specific to a model.
func (s toolset) String() string {
	form := map[bool]string{true: "freeform", false: "a function"}[s.patch == patchForms["freeform"]]
	return fmt.Sprintf("%s, apply_patch as %s", strings.Join(s.runs, " and "), form)
}

// speaker describes a model to the conversation, with the job's settings.
func (a *Agent) speaker(m Known) agent.Speaker {
	by := a.Job.Model
	s := agent.Speaker{
		Model: cmp.Or(m.Name, by.Name), Effort: by.ReasoningEffort, Summary: by.Summary, Serial: a.suits.code, // calls that go side by side are in one script
		Window: m.Profile.ContextWindow, Price: m.Profile.Price,
	}
	if !m.Profile.Reasoning {
		s.Effort, s.Summary = "", ""
	}
	return s
}

// searches says whether each of the models looks for tools by the API's own tool_search.
func (m Model) searches() bool {
	for _, next := range m.Fallbacks {
		if !next.Profile.ToolSearch {
			return false
		}
	}
	return m.Profile.ToolSearch
}
