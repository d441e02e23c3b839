package main

import (
	"runtime/debug"
	"strings"

	"github.com/agent-ci/agent-ci/runner/setup/onboard"
)

// built returns the program's version and commit. Make records the commit, or else the Go
// toolchain, except in a linked work tree.
func built() onboard.Build {
	b := onboard.Build{Version: version}
	if commit != "" {
		b.Commit, b.Modified = strings.CutSuffix(commit, "-dirty")
		return b
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if b.Version == unknownVersion {
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
