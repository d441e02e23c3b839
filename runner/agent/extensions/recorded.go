package extensions

import (
	"context"

	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/mcp"
)

// Recorded holds the recorded answers to calls of external tools, for a replay.
type Recorded struct {
	Lists   []mcp.List
	Answers map[transcript.CallRef]transcript.ToolFinished
	Nested  transcript.ScriptCalls // the calls that scripts made
}

// ReadList reads a server's list of tools from the run directory. It returns an error if the file's digest
// differs from the recorded one.
func ReadList(dir *record.Directory, server transcript.MCPServer) (list mcp.List, err error) {
	err = dir.ReadRecorded(server.File, server.SHA256, "the tools of the server "+server.Name, &list)
	return list, err
}

// Run answers a call from the record. Without a recorded answer it refuses the call.
func (r *Recorded) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	answer, found := r.Answer(ctx, call)
	if !found {
		return tools.Refuse("The record has no answer to call " + transcript.CallRef(call.Ref()).String() + "."), nil
	}
	return tools.Result{Output: answer.Output, Object: answer.ScriptValue, Failed: answer.Failed, Detail: answer.Detail, Recorded: true}, nil
}

// Answer returns the recorded answer to the call with the same number. For a call by a script it returns the next
// unused answer to an equal call, because scripts may make calls in another order.
func (r *Recorded) Answer(ctx context.Context, call tools.Call) (answer transcript.ToolFinished, found bool) {
	ref := transcript.CallRef(call.Ref())
	if madeCall, known := tools.CallOf(ctx); known && call.Caller > 0 {
		if equal, exists := r.Nested.TakeEqual(transcript.ToolStarted{Agent: call.Agent, Caller: call.Caller, Tool: call.Name, Input: madeCall.Input}); exists {
			ref = equal
		}
	}
	answer, found = r.Answers[ref]
	return answer, found
}
