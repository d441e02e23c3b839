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

// Order holds when agents got news of each other in a recorded run. A replay must follow it, because agents run at
// other speeds there.
type Order struct {
	answers map[transcript.CallRef]transcript.ToolFinished // results of calls that wait
	told    map[int]bool                                   // turns of the run's own agent that began with news of an agent's end
	ended   map[string]bool                                // IDs of agents that completed or failed on their own
	last    map[agentTurn]bool                             // last requests of agents' turns
	asked   map[string]int                                 // number of each agent's latest request, by agent ID
	sent    map[transcript.CallRef]bool                    // messages to agents; true if one started a new turn
	sending map[transcript.CallRef]string                  // receivers of the messages whose calls still run
}

// agentTurn identifies a request of an agent.
type agentTurn struct {
	agent string
	turn  int
}

// NewOrder returns an empty Order.
func NewOrder() *Order {
	return &Order{
		answers: map[transcript.CallRef]transcript.ToolFinished{}, told: map[int]bool{}, ended: map[string]bool{}, last: map[agentTurn]bool{},
		asked: map[string]int{}, sent: map[transcript.CallRef]bool{}, sending: map[transcript.CallRef]string{},
	}
}

// sendNames are the tools whose messages can start a new turn of an agent.
var sendNames = []string{dialect.SendInput, dialect.FollowupTask}

// endMessages are texts by which messages about an agent's end are recognized.
var endMessages = [][]byte{[]byte("subagent_notification>"), []byte("Message Type: FINAL_ANSWER")}

// handlers maps event types to their handlers.
var handlers = map[transcript.Type]func(*Order, transcript.Event) error{
	transcript.TypeToolStarted:   handler((*Order).called),
	transcript.TypeToolFinished:  handler((*Order).answered),
	transcript.TypeAgentStarted:  handler((*Order).began),
	transcript.TypeAgentFinished: handler((*Order).finished),
	transcript.TypeModelRequest:  handler((*Order).requested),
}

// handler returns a handler that decodes an event's data into T, and passes it to take with the agent's ID.
func handler[T any](take func(*Order, string, T)) func(*Order, transcript.Event) error {
	return func(r *Order, e transcript.Event) error {
		var data T
		if err := json.Unmarshal(e.Data, &data); err != nil {
			return err
		}
		take(r, e.By(), data)
		return nil
	}
}

// Take applies the next event of the record.
func (r *Order) Take(e transcript.Event) error {
	if take := handlers[e.Type]; take != nil {
		return take(r, e)
	}
	return nil
}

func (r *Order) called(by string, d transcript.ToolStarted) {
	var to struct{ Target string }
	if d.Agent = by; slices.Contains(sendNames, d.Tool) && json.Unmarshal([]byte(cmp.Or(d.Ready, d.Input)), &to) == nil {
		r.sent[d.Ref()], r.sending[d.Ref()] = false, to.Target
	}
}

func (r *Order) answered(by string, d transcript.ToolFinished) {
	d.Agent = by
	if d.Tool == dialect.WaitAgent || d.Tool == dialect.Task {
		r.answers[d.Ref()] = d
	}
	if delete(r.sending, d.Ref()); d.Failed {
		delete(r.sent, d.Ref())
	}
}

func (r *Order) began(id string, d transcript.AgentStarted) {
	for ref, to := range r.sending {
		if to == id || to == d.Name {
			r.sent[ref] = true
		}
	}
}

func (r *Order) finished(id string, d transcript.AgentFinished) {
	r.ended[id] = d.Status == agents.Completed || d.Status == agents.Errored
	r.last[agentTurn{id, r.asked[id]}] = true
}

func (r *Order) requested(by string, d transcript.ModelRequest) {
	if by != "" {
		r.asked[by] = d.Turn
		return
	}
	for _, item := range d.Input {
		if slices.ContainsFunc(endMessages, func(mark []byte) bool { return bytes.Contains(item, mark) }) {
			r.told[d.Turn] = true
		}
	}
}

// sentBy reports whether, in the record, the message of the current call started a new turn of its receiver. known
// is false outside a replay.
func (r *Order) sentBy(ctx context.Context) (began, known bool) {
	if r == nil {
		return false, false
	}
	call, _ := tools.CallOf(ctx)
	began, known = r.sent[transcript.CallRef(call.Ref())]
	return began, known
}

// waitResult is the recorded result of a wait.
type waitResult struct {
	Status   map[string]json.RawMessage
	TimedOut bool `json:"timed_out"`
	Merged   map[string]json.RawMessage
}

// of returns the recorded result of the wait in the current call. replayed is false if there is none.
func (r *Order) of(ctx context.Context) (was waitResult, replayed bool) {
	answer, known := r.answer(ctx)
	return was, known && json.Unmarshal([]byte(answer.Output), &was) == nil
}

// answer returns the recorded result of the current call. known is false if there is none, or outside a replay.
func (r *Order) answer(ctx context.Context) (answer transcript.ToolFinished, known bool) {
	if r != nil {
		call, _ := tools.CallOf(ctx)
		answer, known = r.answers[transcript.CallRef(call.Ref())]
	}
	return answer, known
}

// brokeOff reports whether the current call is a task that the end of the recorded run interrupted. The record has
// no answers for the rest of its agent's work.
func (r *Order) brokeOff(ctx context.Context) bool {
	was, known := r.answer(ctx)
	return known && was.Tool == dialect.Task && was.Detail[agents.TaskDetail] == nil
}

// replayWait waits until the agents whose end ended the recorded wait have ended. Its results are those of Wait.
// The caller holds the lock.
func (m *member) replayWait(ctx context.Context, was waitResult, ids []string) (map[string]agents.Status, bool, error) {
	m.recordedMerges = append([]string{}, slices.Sorted(maps.Keys(was.Merged))...)
	if was.TimedOut {
		return nil, true, ctx.Err()
	}
	statuses := map[string]agents.Status{}
	met := func() bool {
		for id := range was.Status {
			c := m.findBelow(id)
			if c != nil && !c.status.Ended() {
				return false
			}
			statuses[id] = agents.Status{State: agents.NotFound}
			if c != nil {
				statuses[id] = c.status
			}
		}
		for id := range was.Merged {
			if c := m.findBelow(id); c != nil && !c.status.Ended() {
				return false
			}
		}
		return len(ids) > 0 || len(m.news) > 0
	}
	if err := m.team.await(ctx, met); err != nil {
		return nil, true, nil
	}
	for id := range statuses {
		if c := m.findBelow(id); c != nil {
			m.forgetNews(c)
		}
	}
	return statuses, false, nil
}

// replaySettle is Settle in a replay. It reports whether the agent continued in the record after this end. If it
// did not, replaySettle waits for the agents that ended on their own in the record. The caller holds the lock.
func (m *member) replaySettle(ctx context.Context, mayGoOn bool) (bool, error) {
	t, turn := m.team, m.agent.Work().Spent.Turns
	wentOn := m.child == nil && t.recordedOrder.told[turn+1] || m.child != nil && !t.recordedOrder.last[agentTurn{m.child.id, turn}]
	if mayGoOn && wentOn {
		return true, t.await(ctx, func() bool { return len(m.news) > 0 || len(m.workingBelow()) == 0 })
	}
	limited, cancel := context.WithTimeout(ctx, time.Duration(t.job().Agents.Wait))
	defer cancel()
	_ = t.await(limited, func() bool {
		return !slices.ContainsFunc(m.workingBelow(), func(c *child) bool { return t.recordedOrder.ended[c.id] })
	})
	if m.child != nil {
		m.child.turnEnding = true
	}
	return false, ctx.Err()
}
