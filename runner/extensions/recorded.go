package extensions

import (
	"context"
	"fmt"

	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/mcp"
)

// Recorded is what servers of tools, and tools of the job's own that reach more than the agent's
// commands, said in a run before, from its record.
type Recorded struct {
	Lists   []mcp.List
	Answers map[int]transcript.ToolFinished // by the numbers of the calls
}

// tool answers calls by the record.
func (r *Recorded) tool(offered mcp.Offered) tools.Tool {
	return tools.Tool{Spec: offered.Spec, Foreign: true, Mutates: true, Run: r.run}
}

func (r *Recorded) run(_ context.Context, call tools.Call) (tools.Result, error) {
	answer, is := r.Answers[call.Number]
	if !is {
		return tools.Refuse(fmt.Sprintf("The record has no answer to call %d.", call.Number)), nil
	}
	return tools.Result{Output: answer.Output, Failed: answer.Failed, Detail: answer.Detail, Recorded: true}, nil
}
