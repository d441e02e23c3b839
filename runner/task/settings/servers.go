package settings

import (
	"maps"
	"slices"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/secrets"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// ServerSecrets returns the values of variables passed to MCP servers, for removal from all output.
// It omits values that commands see anyway.
func ServerSecrets(env Environment, j *job.Job) (values []secrets.Value) {
	commandEnvironment := policy.Environment(env, j.Policy.Env.Pass, nil)
	for _, name := range serverVariables(j) {
		value := env.Get(name)
		if value == "" || slices.Contains(commandEnvironment, name+"="+value) {
			continue
		}
		values = append(values, secrets.Value{Name: name, Secret: value})
	}
	return values
}

// serverVariables returns the sorted names of all variables passed to servers, without duplicates.
func serverVariables(j *job.Job) []string {
	names := make(map[string]bool)
	for _, server := range j.MCPServers {
		for _, name := range server.Env.Pass {
			names[name] = true
		}
		if server.BearerTokenEnv != "" {
			names[server.BearerTokenEnv] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// CheckServerSecrets returns the first of ServerSecretProblems.
func CheckServerSecrets(env Environment, j *job.Job) error {
	if all := ServerSecretProblems(env, j); len(all) > 0 {
		return all[0]
	}
	return nil
}

// ServerSecretProblems returns an error for every missing server variable, and for every server
// value that commands would see in another variable.
func ServerSecretProblems(env Environment, j *job.Job) (all []error) {
	for _, name := range slices.Sorted(maps.Keys(j.MCPServers)) {
		for _, variable := range j.MCPServers[name].Env.Pass {
			if env.Get(variable) == "" {
				all = append(all, outcome.Stopf(outcome.InvalidInput, "secret",
					"The server %s needs %s, which is not set: set it in agent-ci's environment, or remove it from mcp_servers.%s.env.pass.", name, variable, name))
			}
		}
		variable := j.MCPServers[name].BearerTokenEnv
		switch token, err := env.Key(variable); {
		case err != nil:
			all = append(all, outcome.Stopf(outcome.InvalidInput, "secret", "The token for the server %s cannot be used: %v.", name, err).Because(err))
		case token == "" && variable != "":
			all = append(all, outcome.Stopf(outcome.InvalidInput, "secret",
				"There is no token for the server %s: set %s in agent-ci's environment, or name another variable with mcp_servers.%s.bearer_token_env.", name, variable, name))
		}
	}
	commandEnvironment := policy.Environment(env, j.Policy.Env.Pass, j.Policy.Env.Set)
	for _, value := range ServerSecrets(env, j) {
		if len(value.Secret) < secrets.MinLength {
			continue // too short to search for; another check warns about it
		}
		if other := variableWith(commandEnvironment, value.Secret); other != "" {
			all = append(all, outcome.Stopf(outcome.InvalidInput, "secret",
				"The variable %s, which a server gets (mcp_servers), has a value that commands would see in the variable %s; remove it there.", value.Name, other))
		}
	}
	return all
}
