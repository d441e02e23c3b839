package runcmd

import (
	"strings"

	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/cli"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// ReservedVariables returns the AGENT_CI_ variables that are not job keys: those of flags and of the action.
func ReservedVariables() []string {
	names := append([]string{setVariable}, actionVariables...)
	names = append(names, RunCommand().OwnVariables()...)
	return append(names, PublishCommand().OwnVariables()...)
}

// setVariable has assignments in the form of --set, one a line.
const setVariable = cli.FlagPrefix + "SET"

// VariableAssignments returns the assignments in setVariable.
func VariableAssignments(p cli.Process) (assignments []string) {
	for line := range strings.Lines(p.Variable(setVariable)) {
		if line = strings.TrimSpace(line); line != "" {
			assignments = append(assignments, line)
		}
	}
	return assignments
}

// actionVariables lists the AGENT_CI_ variables of action.yml and campaigns besides flags and job keys.
var actionVariables = []string{actionVariable, commandVariable, directoryVariable, cli.FlagPrefix + "BINARY", settings.UploadVariable, settings.PaceVariable, settings.CampaignVariable}
