package main

import (
	"context"

	"github.com/agent-ci/agent-ci/runner/campaign/spec"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

func schemaCommand() command {
	return command{
		name:  "schema",
		args:  "[job|campaign]",
		about: "print the JSON Schema of the job file, or of the campaign file",
		example: `
agent-ci schema > agent-ci.schema.json   # then, as the first line of a job file:
# yaml-language-server: $schema=agent-ci.schema.json`,
		takes:  operands{0, 1, wantFile},
		define: schema,
	}
}

// wantFile is the message for any other argument.
const wantFile = "it takes the kind of a file: job or campaign"

// schema defines no flags. The function that it returns prints the schema; job is the default.
func schema(flags *flagSet) runFunc {
	return func(_ context.Context, p process, rest []string) int {
		print, known := map[string]func() []byte{"job": job.Format().Schema, "campaign": spec.Format().Schema}[append(rest, "job")[0]]
		if !known {
			return flags.wrong(p, wantFile)
		}
		_, err := p.stdout.Write(print())
		return written(err)
	}
}
