package policy

import (
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestNamesSecret(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        bool
	}{
		{"NPM_TOKEN", "npm_0123456789", true},
		{"AWS_SECRET_ACCESS_KEY", "abcdefgh", true},
		{"db_password", "postgres-password", true},
		{"Authorization", "Bearer abcdefgh", true},
		{"X-Api-Key", "abcdefgh", true},
		{"DATABASE_AUTH", "https://user:pass@host/", true},
		{"GIT_AUTHOR_NAME", "Mona Lisa", false},
		{"KEYBOARD", "us-intl-x", false},
		{"X-Env", "production", false},
		{"SSH_AUTH_SOCK", "/tmp/agent.sock", false},
		{"TOKEN_ENDPOINT", "https://example.com/token", false},
		{"PWD", "/home/mona", false},
		{"OLDPWD", "relative/place", false},
	} {
		must.Same(t, c.want, NamesSecret(c.name, c.value), c.name, c.value)
	}
}
