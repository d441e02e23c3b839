package runner

import (
	"github.com/agent-ci/agent-ci/runner/agent/worker"
	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// ModelsOf returns the models that a run of a job may ask.
func ModelsOf(j *job.Job, environ []string) (models []campaign.Model) {
	for _, m := range worker.Models(j, settings.Environment(environ)) {
		models = append(models, campaign.Model{Name: m.Name, Price: m.Profile.Price, Window: m.Profile.ContextWindow, Output: m.Profile.OutputLimit})
	}
	return models
}
