package runner

import "github.com/agent-ci/agent-ci/gitops/forge"

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
