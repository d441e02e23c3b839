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
		run: schema,
	}
}

func schema(_ context.Context, p process, args []string) int {
	flags := newFlags(schemaCommand())
	rest, status, done := flags.parse(p, args)
	if done {
		return status
	}
	if len(rest) > 0 {
		return flags.wrong(p, "it takes no arguments")
	}
	if _, err := p.stdout.Write(job.Schema()); err != nil {
		return exitFailed
	}
	return exitOK
}
