package command

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/tools"
)

var bashSpec = tools.Spec{
	Name: "bash",
	Description: "Runs a shell command and returns what it printed when it has exited. A status other than 0 is told above that. " +
		"Look at files with read, grep and glob, and change them with edit and write, rather than by commands.",
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"command":{"type":"string","description":"The shell command to execute."},` +
		`"timeout":{"type":"number","description":"Time limit in milliseconds, after which the command and all that it started are killed. Defaults to 600000."},` +
		workdirProperty + `,` +
		`"description":{"type":"string","description":"What the command does, in 5 to 10 words."}` +
		`},"required":["command"],"additionalProperties":false}`),
}

// Bash returns bash, the command tool for models that know OpenCode.
func (t *Tools) Bash() tools.Tool { return t.tool(bashSpec, t.shellLineRequests, t.runBash) }

// runBash runs the single command of a call of bash, and returns its output. If the exit code is not 0, it is in a
// bash_metadata tag before the output, with an explanation of the failure if there is one.
func (t *Tools) runBash(ctx context.Context, call tools.Call, all []commandRequest) (tools.Result, error) {
	return t.runToEnd(ctx, call.Name, all[0], func(ran tools.Ran) string {
		switch {
		case ran.ExitCode != 0:
			metadata := fmt.Sprintf("exit code %d\n%s", ran.ExitCode, strings.TrimSuffix(ran.Output, "\n"))
			return "<bash_metadata>\n" + strings.TrimSuffix(metadata, "\n") + "\n</bash_metadata>\n"
		case ran.Output == "" && (ran.Printed == nil || ran.Printed.Bytes() == 0):
			return "(no output)"
		}
		return ran.Output
	})
}
