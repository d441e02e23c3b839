package runner

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/secrets"
)

// environment is the environment of agent-ci itself, NAME=value each.
type environment []string

func (e environment) get(name string) string {
	for i := len(e) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(e[i], name+"="); ok {
			return value
		}
	}
	return ""
}

// first is the value of the first of the names that has one.
func (e environment) first(names ...string) string {
	for _, name := range names {
		if value := e.get(name); value != "" {
			return value
		}
	}
	return ""
}

// home is the user's folder; empty where the environment names none. A relative
// one would be another in each folder.
func (e environment) home() string {
	if home := e.get("HOME"); filepath.IsAbs(home) {
		return home
	}
	return ""
}

func (e environment) inActions() bool { return e.get("GITHUB_ACTIONS") == "true" }

// tokenNames are where a GitHub token is looked for.
var tokenNames = []string{"GITHUB_TOKEN", "GH_TOKEN"}

// secretNames are the variables that hold credentials of a run.
var secretNames = []string{
	"GITHUB_TOKEN", "GH_TOKEN", "GITHUB_ENTERPRISE_TOKEN", "GH_ENTERPRISE_TOKEN", "OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "CODEX_API_KEY",
	"ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
}

// secrets are the values that must not appear anywhere: those of the known
// names and of more, whatever they look like, and those of all variables that
// are named like a credential.
func (e environment) secrets(more ...string) []secrets.Value {
	var values []secrets.Value
	known := append(append([]string(nil), secretNames...), more...)
	for _, name := range known {
		if value := e.get(name); value != "" {
			values = append(values, secrets.Value{Name: name, Secret: value})
		}
	}
	for _, variable := range e {
		name, value, _ := strings.Cut(variable, "=")
		if len(value) >= secrets.MinLength && !slices.Contains(known, name) && policy.HoldsSecret(name, value) {
			values = append(values, secrets.Value{Name: name, Secret: value})
		}
	}
	return values
}
