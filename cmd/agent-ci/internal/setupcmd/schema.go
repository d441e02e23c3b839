package setupcmd

import (
	"context"

	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/cli"
	"github.com/agent-ci/agent-ci/runner/campaign/spec"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

func SchemaCommand() cli.Command {
	return cli.Command{
		Name:  "schema",
		Args:  "[job|campaign]",
		About: "print the JSON Schema of the job file, or of the campaign file",
		Example: `
agent-ci schema > agent-ci.schema.json   # then, as the first line of a job file:
# yaml-language-server: $schema=agent-ci.schema.json`,
		Takes:  cli.Operands{Most: 1, Problem: wantFile},
		Define: defineSchema,
	}
}

// wantFile is the message for any other argument.
const wantFile = "it takes the kind of a file: job or campaign"

// defineSchema defines no flags. The function that it returns prints the schema; job is the default.
func defineSchema(*cli.FlagSet) cli.RunFunc {
	return func(_ context.Context, p cli.Process, rest []string) error {
		var schema []byte
		switch kind := append(rest, "job")[0]; kind {
		case "job":
			schema = job.Format().Schema()
		case "campaign":
			schema = spec.Format().Schema()
		default:
			return cli.Misuse(wantFile)
		}
		_, err := p.Stdout.Write(schema)
		return err
	}
}
