package runcmd

import (
	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/cli"
	"github.com/agent-ci/agent-ci/runner/task/actions"
)

// workflowStep returns the workflow step that this process is, or nil outside of GitHub Actions.
func workflowStep(p cli.Process) *actions.Step {
	log, inActions := p.Stderr.(*actions.Log)
	if !inActions {
		return nil
	}
	return &actions.Step{Log: log, MayMask: p.Variable(actionVariable) == "true", OutputFile: p.Variable("GITHUB_OUTPUT"), SummaryFile: p.Variable("GITHUB_STEP_SUMMARY")}
}

// actionVariable is set by action.yml. Nothing redirects that step's log, so masks in it take effect.
const actionVariable = cli.FlagPrefix + "ACTION"
