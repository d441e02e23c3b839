package team

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/agents"
	"github.com/agent-ci/agent-ci/tools/dialect"
)

// RecordedOrder holds the order in which agents of a recorded run got news of each other. A replay must follow it, although
// its agents run at other speeds.
type RecordedOrder struct {
	waitResults    map[transcript.CallRef]transcript.ToolFinished // results of calls that wait
	newsTurns      map[int]bool                                   // turns of the run's own agent that began with news of a subagent's end
	endedOnOwn     map[string]bool                                // IDs of subagents that completed or failed on their own
	lastRequests   map[subagentTurn]bool                          // last requests of subagents' turns
	latestRequests map[string]int                                 // number of each subagent's latest request, by its ID
	startedTurns   map[transcript.CallRef]bool                    // for each call with a message to a subagent, whether it started a new turn
	openMessages   map[transcript.CallRef]string                  // receivers of the messages whose calls still run
}

// subagentTurn identifies a request of a subagent.
type subagentTurn struct {
	agent string
	turn  int
}

// NewRecordedOrder returns an empty RecordedOrder.
func NewRecordedOrder() *RecordedOrder {
	return &RecordedOrder{
		waitResults: map[transcript.CallRef]transcript.ToolFinished{}, newsTurns: map[int]bool{}, endedOnOwn: map[string]bool{}, lastRequests: map[subagentTurn]bool{},
		latestRequests: map[string]int{}, startedTurns: map[transcript.CallRef]bool{}, openMessages: map[transcript.CallRef]string{},
	}
}

// sendNames are the tools whose messages can start a new turn of a subagent.
var sendNames = []string{dialect.SendInput, dialect.FollowupTask}

// endMessages are texts that identify messages about a subagent's end.
var endMessages = [][]byte{[]byte("subagent_notification>"), []byte("Message Type: FINAL_ANSWER")}

// Apply applies the next event of the record.
func (o *RecordedOrder) Apply(e transcript.Event) {
	id := e.Subagent()
	switch d := e.Content.(type) {
	case transcript.ToolStarted:
		var message struct{ Target string }
		if slices.Contains(sendNames, d.Tool) && json.Unmarshal([]byte(cmp.Or(d.EffectiveInput, d.Input)), &message) == nil {
			o.startedTurns[d.Ref()], o.openMessages[d.Ref()] = false, message.Target
		}
	case transcript.ToolFinished:
		if d.Tool == dialect.WaitAgent || d.Tool == dialect.Task {
			o.waitResults[d.Ref()] = d
		}
		delete(o.openMessages, d.Ref())
		if d.Failed {
			delete(o.startedTurns, d.Ref())
		}
	case transcript.AgentStarted: // the open messages to it started its turn
		for ref, receiver := range o.openMessages {
			if receiver == id || receiver == d.Name {
				o.startedTurns[ref] = true
			}
		}
	case transcript.AgentFinished:
		o.endedOnOwn[id] = d.Status == agents.Completed || d.Status == agents.Errored
		o.lastRequests[subagentTurn{id, o.latestRequests[id]}] = true
	case transcript.ModelRequest:
		if id != "" {
			o.latestRequests[id] = d.Turn
			return
		}
		for _, item := range d.Input {
			if slices.ContainsFunc(endMessages, func(mark []byte) bool { return bytes.Contains(item, mark) }) {
				o.newsTurns[d.Turn] = true
			}
		}
	}
}

// recordedSend reports whether the message of the current call started a new turn of its receiver in the record. known
// is false outside a replay.
func (o *RecordedOrder) recordedSend(ctx context.Context) (startedTurn, known bool) {
	if o == nil {
		return false, false
	}
	call, _ := tools.CallOf(ctx)
	startedTurn, known = o.startedTurns[transcript.CallRef(call.Ref())]
	return startedTurn, known
}

// waitResult is the recorded result of a wait.
type waitResult struct {
	Status   map[string]json.RawMessage
	TimedOut bool `json:"timed_out"`
	Merged   map[string]json.RawMessage
}

// recordedWait returns the recorded result of the current call, which is a wait. replayed is false if there is none.
func (o *RecordedOrder) recordedWait(ctx context.Context) (wait waitResult, replayed bool) {
	answer, known := o.recordedResult(ctx)
	return wait, known && json.Unmarshal([]byte(answer.Output), &wait) == nil
}

// recordedResult returns the recorded result of the current call. known is false if there is none, or outside a replay.
func (o *RecordedOrder) recordedResult(ctx context.Context) (answer transcript.ToolFinished, known bool) {
	if o != nil {
		call, _ := tools.CallOf(ctx)
		answer, known = o.waitResults[transcript.CallRef(call.Ref())]
	}
	return answer, known
}

// isInterruptedTask reports whether the current call is a task that did not finish in the recorded run. The record has
// no answers for the rest of its subagent's work.
func (o *RecordedOrder) isInterruptedTask(ctx context.Context) bool {
	recorded, known := o.recordedResult(ctx)
	return known && recorded.Tool == dialect.Task && recorded.Detail[agents.TaskDetail] == nil
}

// replayWait is Wait in a replay. It waits until all subagents in the recorded result have ended and merged. If the recorded
// wait timed out, or ctx ends first, timedOut is true and ended is nil. ids are the subagents that the call names, if any.
// The caller holds the lock.
func (a *teamAgent) replayWait(ctx context.Context, recorded waitResult, ids []string) (ended map[string]agents.Status, timedOut bool, err error) {
	a.recordedMerges = append([]string{}, slices.Sorted(maps.Keys(recorded.Merged))...) // not nil, even if it merged none
	if recorded.TimedOut {
		return nil, true, ctx.Err()
	}
	recordedIDs := slices.Collect(maps.Keys(recorded.Status))
	allEnded := func() bool {
		ended = a.endedStatuses(recordedIDs)
		hasMerged := len(a.endedStatuses(a.recordedMerges)) == len(a.recordedMerges)
		return hasMerged && len(ended) == len(recordedIDs) && (len(ids) > 0 || len(a.news) > 0)
	}
	if err := a.team.await(ctx, allEnded); err != nil { // ctx has ended
		return nil, true, nil
	}
	a.forgetReported(ended)
	return ended, false, nil
}

// replaySettle is Settle in a replay. news is true if the agent continued in the record. Otherwise replaySettle waits
// for the subagents that ended on their own in the record. The caller holds the lock.
func (a *teamAgent) replaySettle(ctx context.Context, hasTurnLeft bool) (news bool, err error) {
	t, turn := a.team, a.agent.Work().Spent.Turns
	continued := t.recordedOrder.newsTurns[turn+1]
	if a.starter != nil {
		continued = !t.recordedOrder.lastRequests[subagentTurn{a.id, turn}]
	}
	if hasTurnLeft && continued {
		return true, t.await(ctx, func() bool { return len(a.news) > 0 || len(a.workingBelow()) == 0 })
	}
	waitCtx, cancel := context.WithTimeout(ctx, time.Duration(t.job().Agents.Wait))
	defer cancel()
	_ = t.await(waitCtx, func() bool {
		return !slices.ContainsFunc(a.workingBelow(), func(s *teamAgent) bool { return t.recordedOrder.endedOnOwn[s.id] })
	})
	a.turnEnding = true
	return false, ctx.Err()
}
