package main

import (
	"runtime/debug"

	"github.com/agent-ci/agent-ci/runner/onboard"
)

// built is what the Go toolchain noted of the commit that this program is of.
func built() onboard.Build {
	b := onboard.Build{Version: version}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if b.Version == "unknown" {
		b.Version = info.Main.Version // go install MODULE@VERSION
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value != "false"
		}
	}
	return b
}
