package sandbox

import (
	"context"
	"errors"
	"os"

	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
)

// supervisorConn replaces Linux's supervisor.
type supervisorConn struct{}

func (*supervisorConn) child(Command) child  { return nil }
func (*supervisorConn) killEverything() bool { return true }
func (*supervisorConn) close()               {}

func (*confinement) stop() (resume func() error, err error) {
	return nil, errors.New("this system has nothing to stop them with")
}

func onMountOf(*os.File, string) bool { return true }

// EarlyProcess replaces Linux's begun process.
type EarlyProcess struct{}

// StartEarly starts nothing here.
func StartEarly(Network) *EarlyProcess { return nil }

// End ends nothing here.
func (*EarlyProcess) End() {}

// Open returns an unconfined Sandbox for DangerFullAccess. Otherwise it fails: macOS has no
// confinement.
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

// Kernel returns the kernel's release, which is irrelevant here.
func Kernel() string { return "" }
