package main

import (
	"context"
	"fmt"
	"runtime"
)

func versionCommand() command {
	return command{
		name:    "version",
		about:   "print the version",
		example: "agent-ci version",
		run:     showVersion,
	}
}

func showVersion(_ context.Context, p process, args []string) int {
	flags := newFlags(versionCommand())
	rest, status, done := flags.parse(p, args)
	if done {
		return status
	}
	if len(rest) > 0 {
		return flags.wrong(p, "it takes no arguments")
	}
	fmt.Fprintf(p.stdout, "agent-ci %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return exitOK
}
