package extensions

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/mcp"
)

// Recorded holds the servers' answers from a run's record.
type Recorded struct {
	Lists   []mcp.List
	Answers map[transcript.CallRef]transcript.ToolFinished
	Nested  *transcript.ScriptCalls // the calls of scripts among them
}

// ReadList reads a server's list of tools. It must match the record.
func ReadList(dir *record.Directory, of transcript.MCPServer) (list mcp.List, err error) {
	raw, err := dir.Read(of.File)
	if errors.Is(err, fs.ErrNotExist) {
		return list, fmt.Errorf("the run directory has no %s, with the tools of the server %s", of.File, of.Name)
	}
	if err == nil && digestOf(raw) != of.SHA256 {
		return list, fmt.Errorf("%s, with the tools of the server %s, was changed since it was recorded", of.File, of.Name)
	}
	if err == nil {
		err = json.Unmarshal(raw, &list)
	}
	if err != nil {
		return list, fmt.Errorf("read %s, with the tools of the server %s: %w", of.File, of.Name, err)
	}
	return list, nil
}

func digestOf(raw []byte) string {
	digest := sha256.Sum256(raw)
	return hex.EncodeToString(digest[:])
}

// tool answers calls by the record.
func (r *Recorded) tool(offered mcp.Offered) tools.Tool {
	return tools.Tool{Spec: offered.Spec, Foreign: true, Mutates: true, Run: r.Run}
}

// Run answers a call by the record.
func (r *Recorded) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	answer, is := r.Answer(ctx, call)
	if !is {
		return tools.Refuse("The record has no answer to call " + transcript.CallRef(call.Ref()).String() + "."), nil
	}
	return tools.Result{Output: answer.Output, Object: answer.Object, Failed: answer.Failed, Detail: answer.Detail, Recorded: true}, nil
}

// Answer returns a call's recorded answer, by number; for calls in scripts, by an equal call.
func (r *Recorded) Answer(ctx context.Context, call tools.Call) (transcript.ToolFinished, bool) {
	ref := transcript.CallRef(call.Ref())
	if made, is := tools.CallOf(ctx); is && call.Caller > 0 {
		if same, is := r.Nested.TakeEqual(transcript.ToolStarted{Agent: call.Agent, Caller: call.Caller, Tool: call.Name, Input: made.Input}); is {
			ref = same
		}
	}
	answer, is := r.Answers[ref]
	return answer, is
}
