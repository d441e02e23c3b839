package sandbox

import (
	"context"

	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
)

// inside stands for the supervisor that there is on Linux.
type inside struct{}

func (*inside) child(Command) child { return nil }
func (*inside) drain() bool         { return true }
func (*inside) close()              {}

// processGroup stands for the cgroup that there is on Linux.
type processGroup struct{}

func (*processGroup) remove() {}

// Begun stands for the process that there is on Linux.
type Begun struct{}

// Begin starts nothing here.
func Begin(Network) *Begun { return nil }

// End ends nothing here.
func (*Begun) End() {}

// Open gives a Sandbox that confines nothing where the mode is
// DangerFullAccess. Else it fails: there is nothing to confine with here.
func Open(_ context.Context, o Options) (*Sandbox, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Mode == grants.DangerFullAccess {
		return openUnconfined(o)
	}
	return nil, &UnavailableError{
		Reached: LevelNone, Asked: o.Require, Missing: []string{"this system has neither namespaces nor Landlock"},
		Remedy: "Run on Linux, or without confinement by policy.sandbox: danger-full-access.",
	}
}

// Kernel is the release of this system's kernel, which nothing here depends on.
func Kernel() string { return "" }
