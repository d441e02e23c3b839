package runner

import (
	"testing"

	"github.com/agent-ci/agent-ci/gitops/forge"
)

func TestServerOf(t *testing.T) {
	for api, want := range map[string]string{
		"https://api.github.com":         "https://github.com",
		"https://ghe.example.com/api/v3": "https://ghe.example.com",
		"https://api.octo.ghe.com":       "https://octo.ghe.com",
	} {
		if got := serverOf(api); got != want {
			t.Errorf("serverOf(%q) = %q, want %q", api, got, want)
		}
	}
}

// silent is a forge that is asked nothing, and named a repository of it.
type (
	silent struct{ forge.Forge }
	named  struct {
		forge.Repository
		name string
	}
)

func (silent) Repository(name string) forge.Repository { return named{name: name} }

func (n named) Name() string { return n.name }
