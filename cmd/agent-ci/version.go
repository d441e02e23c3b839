package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/cli"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/setup/onboard"
)

func versionCommand() cli.Command {
	return cli.Command{
		Name:    "version",
		About:   "print the version",
		Example: "agent-ci version",
		Define: func(*cli.FlagSet) cli.RunFunc {
			return func(_ context.Context, p cli.Process, _ []string) error {
				_, err := fmt.Fprintf(p.Stdout, "agent-ci %s (%s, %s/%s)\n", p.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
				return err
			}
		},
	}
}

// describeVersion returns the build's release, or else its commit. The commit ends in -dirty if the tree
// had changes.
func describeVersion(b onboard.Build) string {
	switch {
	case b.IsRelease():
		return b.Version
	case b.Commit == "":
		return unknownVersion
	case b.Modified:
		return clip.SHA(b.Commit) + "-dirty"
	}
	return clip.SHA(b.Commit)
}

// readBuild returns the program's version and commit. They come from make build, or else from Go's build
// information, which is missing in a linked work tree.
func readBuild() onboard.Build {
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
