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
		define:  func(*flagSet) deed { return showVersion },
	}
}

func showVersion(_ context.Context, p process, _ []string) int {
	fmt.Fprintf(p.stdout, "agent-ci %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return exitOK
}
