package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/actions"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

func (p process) variable(name string) string { return stage.Variable(p.environ, name) }

// wrapStepOutput returns p with outputs in which no text becomes a workflow command of GitHub
// Actions.
func wrapStepOutput(p process) process {
	if p.variable("GITHUB_ACTIONS") != "true" {
		return p
	}
	p.stdout, p.stderr = actions.NewLog(p.stdout), actions.NewLog(p.stderr)
	return p
}

// stepOf returns the step of GitHub Actions that p is, or nil.
func stepOf(p process) *actions.Step {
	log, inActions := p.stderr.(*actions.Log)
	if !inActions {
		return nil
	}
	return &actions.Step{Log: log, Masks: p.variable(actionVariable) == "true", OutputFile: p.variable("GITHUB_OUTPUT"), SummaryFile: p.variable("GITHUB_STEP_SUMMARY")}
}

// actionVariable is set by action.yml, whose log nobody redirects.
const actionVariable = flagPrefix + "ACTION"

// actionVariables are what action.yml sets beside flags and job keys.
var actionVariables = []string{actionVariable, commandVariable, directoryVariable, flagPrefix + "BINARY", settings.UploadVariable, settings.PaceVariable, settings.CampaignVariable}

// setVariable holds assignments as --set takes them, one a line.
const setVariable = flagPrefix + "SET"

func setLines(p process) []string {
	var assignments []string
	for line := range strings.Lines(p.variable(setVariable)) {
		if line = strings.TrimSpace(line); line != "" {
			assignments = append(assignments, line)
		}
	}
	return assignments
}

// failOn has the outcomes that give an exit status other than 0.
type failOn map[outcome.Outcome]bool

// readFailOn reads a list of outcomes, separated by commas or blanks.
func readFailOn(list string) (failOn, error) {
	failing := failOn{}
	names := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' })
	if len(names) == 0 {
		names = []string{"failures"}
	}
	for _, name := range names {
		_, known := outcome.All()[outcome.Outcome(name)]
		switch {
		case name == "failures":
			for each, code := range outcome.All() {
				failing[each] = failing[each] || code != 0
			}
		case name == "none" && len(names) == 1:
		case name == "none":
			return nil, errors.New("--fail-on none stands alone")
		case known:
			failing[outcome.Outcome(name)] = true
		default:
			return nil, fmt.Errorf("--fail-on takes outcomes, failures or none, not %s", name)
		}
	}
	return failing, nil
}

// failOnWords lists the words accepted by --fail-on.
func failOnWords() []string {
	words := []string{"failures", "none"}
	for _, name := range slices.Sorted(maps.Keys(outcome.All())) {
		words = append(words, string(name))
	}
	return words
}

// status returns the exit status for a result.
func (f failOn) status(r record.Result) int {
	switch {
	case !f[r.Outcome]:
		return exitOK
	case r.ExitCode == 0:
		return exitFailed
	}
	return r.ExitCode
}
