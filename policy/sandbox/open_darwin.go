package sandbox

import "context"

// inside stands for the supervisor that there is on Linux.
type inside struct{}

func (*inside) child(Command) child { return nil }
func (*inside) close()              {}

// Open gives a Sandbox that confines nothing where the mode is
// DangerFullAccess. Else it fails: there is nothing to confine with here.
func Open(_ context.Context, o Options) (*Sandbox, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Mode == DangerFullAccess && o.Network == NetworkProxied {
		return nil, unconfinedProxy(o)
	}
	if o.Mode == DangerFullAccess && LevelNone.reaches(o.Require) {
		return &Sandbox{AdoptOrphans: true}, nil
	}
	return nil, &UnavailableError{
		Reached: LevelNone, Asked: o.Require, Missing: []string{"this system has neither namespaces nor Landlock"},
		Remedy: "Run on Linux, or without confinement by policy.sandbox: danger-full-access.",
	}
}
