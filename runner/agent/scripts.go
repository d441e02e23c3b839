package agent

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/tools"
)

// startedCalls returns the started calls that selects accepts, in starting order. Their outputs are not in
// the history yet.
func (p *ResumeState) startedCalls(selects func(transcript.CallRef) bool) []startedCall {
	all := slices.SortedFunc(maps.Values(p.started), func(a, b startedCall) int { return cmp.Compare(a.eventSeq, b.eventSeq) })
	return slices.DeleteFunc(all, func(call startedCall) bool { return !selects(call.Ref()) })
}

// waitedRefusal answers a script's call that still waited for an earlier call when the runner was killed.
const waitedRefusal = "Not run: the runner was killed while a call before this one changed something, and this one waited for that."

// finishScriptCalls records results for the unfinished calls of a killed run's scripts. Calls after a mutating one
// were still waiting for it, so they get waitedRefusal.
func (c *Conversation) finishScriptCalls(p *ResumeState, interrupted Interrupted) {
	mutated := false
	for _, started := range p.startedCalls(func(ref transcript.CallRef) bool { return ref.Caller > 0 && !p.hasFinished(ref) }) {
		call := tools.Call{
			ID: started.CallID, Number: started.Number, Caller: started.Caller, Turn: started.Turn, Name: started.Tool, Input: started.Input,
		}
		result := tools.Refuse(waitedRefusal)
		if !mutated {
			result = interrupted(call)
		}
		mutated = mutated || started.Mutates
		c.Finished(tools.Finished{Call: call, Tool: started.Tool, Result: result})
		p.finished[started.Ref()] = transcript.ToolFinished{Number: started.Number, Caller: started.Caller, Failed: result.Failed, Output: result.Output}
	}
}

// reportScriptCalls tells the model which calls scripts made since the last request. It leaves out the scripts of
// unanswered calls, because the outputs of these list them.
func (c *Conversation) reportScriptCalls(p *ResumeState) error {
	unanswered := map[int]bool{}
	for _, call := range p.openAnswer.Calls {
		unanswered[call.Number] = true
	}
	words := p.describeScriptCalls("The runner was killed while scripts ran, and was started again: the scripts are gone. The last calls that they made",
		func(ref transcript.CallRef) bool { return ref.Caller > 0 && !unanswered[ref.Caller] })
	if words == "" {
		return nil
	}
	return c.Tell(words)
}

// The report on a lost script lists at most its last maxReportedCalls calls. It shows at most
// maxReportedInput bytes of each input, and maxReportedOutput of each output.
const (
	maxReportedCalls  = 40
	maxReportedInput  = 300
	maxReportedOutput = 600
)

// describeScriptCalls returns head and a list of the last calls that selects accepts, oldest first. It
// returns "" if there are none.
func (p *ResumeState) describeScriptCalls(head string, selects func(transcript.CallRef) bool) string {
	calls := p.startedCalls(selects)
	if len(calls) == 0 {
		return ""
	}
	var words strings.Builder
	words.WriteString(head)
	if more := len(calls) - maxReportedCalls; more > 0 {
		fmt.Fprintf(&words, ", behind %d others", more)
		calls = calls[more:]
	}
	words.WriteString(", and what came of each:")
	for _, call := range calls {
		fmt.Fprintf(&words, "\n- %s %s: %s", call.Tool, clip.Visible(call.Input, maxReportedInput), clip.Visible(p.finished[call.Ref()].Output, maxReportedOutput))
	}
	return words.String()
}
