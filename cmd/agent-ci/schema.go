package main

import (
	"context"

	"github.com/agent-ci/agent-ci/runner/job"
)

func schemaCommand() command {
	return command{
		name:  "schema",
		about: "print the JSON Schema of the job file",
		example: `
agent-ci schema > agent-ci.schema.json   # then, as the first line of a job file:
# yaml-language-server: $schema=agent-ci.schema.json`,
		define: func(*flagSet) deed { return schema },
	}
}

func schema(_ context.Context, p process, _ []string) int {
	if _, err := p.stdout.Write(job.Schema()); err != nil {
		return exitFailed
	}
	return exitOK
}
