package team

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/agents"
)

// Recorded is when agents of a run that is replayed heard of others: how fast each works is not of
// the record.
type Recorded struct {
	Answers map[transcript.CallRef]transcript.ToolFinished // of waits
	Told    map[int]bool                                   // turns in which the agent of the run heard that another had ended
	Ended   map[string]bool                                // ids of agents that ended by themselves
}

// waitName is the tool that waits for agents.
const waitName = "wait_agent"

// marks stand in messages that tell of the end of an agent.
var marks = [][]byte{[]byte("subagent_notification>"), []byte("Message Type: FINAL_ANSWER")}

// Take adds the next event.
func (r *Recorded) Take(e transcript.Event) error {
	switch e.Type {
	case transcript.TypeToolFinished:
		var d transcript.ToolFinished
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return err
		}
		if d.Agent = e.By(); d.Tool == waitName {
			r.Answers[d.Ref()] = d
		}
	case transcript.TypeAgentFinished:
		var d transcript.AgentFinished
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return err
		}
		r.Ended[e.By()] = d.Status == agents.Completed || d.Status == agents.Errored
	case transcript.TypeModelRequest:
		var d transcript.ModelRequest
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return err
		}
		for _, item := range d.Input {
			if e.By() == "" && slices.ContainsFunc(marks, func(mark []byte) bool { return bytes.Contains(item, mark) }) {
				r.Told[d.Turn] = true
			}
		}
	}
	return nil
}

// waited is what a wait came to.
type waited struct {
	Status   map[string]json.RawMessage
	TimedOut bool `json:"timed_out"`
	Merged   map[string]json.RawMessage
}

// of is what the wait that is made now came to before; false where nothing is replayed.
func (r *Recorded) of(ctx context.Context) (was waited, replayed bool) {
	if r == nil {
		return was, false
	}
	call, _ := tools.CallOf(ctx)
	answer, known := r.Answers[transcript.CallRef(call.Ref())]
	return was, known && json.Unmarshal([]byte(answer.Output), &was) == nil
}

// waitAgain waits for the agents that a wait was over by before. The caller has the lock.
func (m *Member) waitAgain(ctx context.Context, was waited, ids []string) (map[string]agents.Status, bool, error) {
	m.merges = append([]string{}, slices.Sorted(maps.Keys(was.Merged))...)
	if was.TimedOut {
		return nil, true, ctx.Err()
	}
	statuses := map[string]agents.Status{}
	met := func() bool {
		for id := range was.Status {
			c := m.mine(id)
			if c != nil && !c.status.Ended() {
				return false
			}
			statuses[id] = agents.Status{State: agents.NotFound}
			if c != nil {
				statuses[id] = c.status
			}
		}
		for id := range was.Merged {
			if c := m.mine(id); c != nil && !c.status.Ended() {
				return false
			}
		}
		return len(ids) > 0 || len(m.news) > 0
	}
	if err := m.team.await(ctx, met); err != nil {
		return nil, true, nil
	}
	for id := range statuses {
		if c := m.mine(id); c != nil {
			m.forgetNews(c)
		}
	}
	return statuses, false, nil
}

// settleAgain says whether the agent of the run went on at this end before, since others had ended, and
// waits for those that ended by themselves. The caller has the lock.
func (m *Member) settleAgain(ctx context.Context, mayGoOn bool) (bool, error) {
	t := m.team
	if mayGoOn && t.waits.Told[m.agent.Work().Spent.Turns+1] {
		return true, t.await(ctx, func() bool { return len(m.news) > 0 || len(m.alive()) == 0 })
	}
	limited, cancel := context.WithTimeout(ctx, time.Duration(t.job().Agents.Wait))
	defer cancel()
	_ = t.await(limited, func() bool {
		return !slices.ContainsFunc(m.alive(), func(c *child) bool { return t.waits.Ended[c.id] })
	})
	return false, ctx.Err()
}
