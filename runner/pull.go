package runner

import (
	"context"

	"github.com/agent-ci/agent-ci/runner/outcome"
)

// readPullTask takes the task from what was said on a pull request of a run.
func (r *run) readPullTask(context.Context) error {
	return outcome.Stopf(outcome.Skipped, "pull_request",
		"Pull request #%d is not gone on with: this version works on issues and prompts.", r.pull.Number)
}
