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

// variable returns the value of an environment variable, or "".
func (p process) variable(name string) string { return stage.Variable(p.environ, name) }

// wrapStepOutput returns p. In GitHub Actions, its outputs then escape text that would act as a workflow
// command.
func wrapStepOutput(p process) process {
	if p.variable("GITHUB_ACTIONS") != "true" {
		return p
	}
	p.stdout, p.stderr = actions.NewLog(p.stdout), actions.NewLog(p.stderr)
	return p
}

// stepOf returns the workflow step that this process is, or nil outside of GitHub Actions.
func stepOf(p process) *actions.Step {
	log, inActions := p.stderr.(*actions.Log)
	if !inActions {
		return nil
	}
	return &actions.Step{Log: log, Masks: p.variable(actionVariable) == "true", OutputFile: p.variable("GITHUB_OUTPUT"), SummaryFile: p.variable("GITHUB_STEP_SUMMARY")}
}

// actionVariable is set by action.yml. Nothing redirects that step's log, so masks in it take effect.
const actionVariable = flagPrefix + "ACTION"

// actionVariables lists the AGENT_CI_ variables of action.yml and of campaigns that are neither flags nor
// job keys.
var actionVariables = []string{actionVariable, commandVariable, directoryVariable, flagPrefix + "BINARY", settings.UploadVariable, settings.PaceVariable, settings.CampaignVariable}

// setVariable has assignments in the form of --set, one a line.
const setVariable = flagPrefix + "SET"

// setLines returns the assignments in setVariable.
func setLines(p process) []string {
	var assignments []string
	for line := range strings.Lines(p.variable(setVariable)) {
		if line = strings.TrimSpace(line); line != "" {
			assignments = append(assignments, line)
		}
	}
	return assignments
}

// failOn is the set of outcomes with an exit status other than 0.
type failOn map[outcome.Outcome]bool

// readFailOn parses the value of --fail-on: outcomes separated by commas or white space. Empty means failures.
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
		case name == "none" && len(names) == 1: // nothing fails
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
