package main

import (
	"context"

	"github.com/agent-ci/agent-ci/runner/job"
)

func schemaCommand() command {
	return command{
		name:  "schema",
		args:  "[--campaign]",
		about: "print the JSON Schema of the job file",
		example: `
agent-ci schema > agent-ci.schema.json   # then, as the first line of a job file:
# yaml-language-server: $schema=agent-ci.schema.json`,
		define: schema,
	}
}

func schema(flags *flagSet) deed {
	ofCampaign := false
	flags.on(&ofCampaign, "campaign", "that of the campaign file")
	return func(_ context.Context, p process, _ []string) int {
		written := job.Schema
		if ofCampaign {
			written = job.CampaignSchema
		}
		if _, err := p.stdout.Write(written()); err != nil {
			return exitFailed
		}
		return exitOK
	}
}
