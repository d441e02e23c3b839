package settings

import (
	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/secrets"
	"github.com/agent-ci/agent-ci/runner/job"
)

// Settings are what a run goes by once they are read. They are not changed: what
// makes them stricter gives new ones.
type Settings struct {
	Job  job.Job
	File File // of the job; the zero value is none
}

// OnBranch are the settings of a run whose change goes to that branch.
func (s *Settings) OnBranch(name string) *Settings {
	on := *s
	on.Job.PullRequest.Branch = name
	return &on
}

// ForPerson are the settings of a run that goes on with a person's branch, which gets
// what is done and passes, and nothing else.
func (s *Settings) ForPerson() *Settings {
	careful := *s
	careful.Job.OnVerifyFailed, careful.Job.Limits.OnBudget = "none", "keep"
	return &careful
}

// Secrets are what a run removes from everything that it writes or sends: the keys
// and tokens of its environment, and what the job, which may be nil, gives to
// commands or to the model's API under a name like theirs.
func Secrets(env Environment, j *job.Job) []secrets.Value {
	if j == nil {
		return env.Secrets()
	}
	var values []secrets.Value
	add := func(prefix string, of map[string]string) {
		for name, value := range of {
			if policy.HoldsSecret(name, value) {
				values = append(values, secrets.Value{Name: prefix + name, Secret: value})
			}
		}
	}
	add("model.headers.", j.Model.Headers)
	add("model.query.", j.Model.Query)
	add("policy.env.set.", j.Policy.Env.Set)
	for _, tool := range j.Tools.Hosted {
		values = append(values, hostedSecrets(tool)...)
	}
	return append(values, env.Secrets(j.Model.APIKeyEnv, j.PullRequest.Commit.KeyEnv)...)
}

// hostedSecrets are what a tool of the API needs to be let in elsewhere.
func hostedSecrets(tool map[string]any) []secrets.Value {
	var values []secrets.Value
	if token, _ := tool["authorization"].(string); token != "" {
		values = append(values, secrets.Value{Name: "tools.hosted.authorization", Secret: token})
	}
	headers, _ := tool["headers"].(map[string]any)
	for name, header := range headers {
		if value, _ := header.(string); policy.HoldsSecret(name, value) {
			values = append(values, secrets.Value{Name: "tools.hosted.headers." + name, Secret: value})
		}
	}
	return values
}
