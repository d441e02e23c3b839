package worker

import (
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/tools"
)

// letPrograms lets programs that the API runs call tools, where the job lets there be programs.
func (a *Agent) letPrograms(registry *tools.Registry) error {
	if !a.Job.Model.Programmatic {
		return nil
	}
	if err := registry.LetPrograms(a.known(a.Job.Tools.Programmatic)); err != nil {
		return outcome.Stopf(outcome.InvalidInput, "unknown_tool", "%s.", outcome.Sentence(err.Error())).Because(err)
	}
	return nil
}
