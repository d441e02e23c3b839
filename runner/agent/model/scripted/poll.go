package scripted

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
)

// untilEnded is the only value of the key until: the next turn waits until the call has ended.
const untilEnded = "ended"

// waitCall reads the output of a call. If that says that something still runs, waitCall returns the tool and
// arguments of the call that waits for it.
type waitCall func(output string) (tool string, arguments map[string]any, runs bool)

// pollState tracks the answers between two turns. They wait for the calls with the key until.
type pollState struct {
	callIDs       []string          // IDs of the calls to wait for
	newItems      []json.RawMessage // items that the model got since the last turn
	count         int               // number of waiting answers since the last turn
	unawaitedRuns bool              // something still runs that no call waits for
}

// poll returns an answer whose calls wait for those calls of polls.callIDs that still run, or nil if none runs.
// newItems are the items since the last request.
func (s *Script) poll(newItems []json.RawMessage) (*model.Response, error) {
	s.polls.newItems = append(s.polls.newItems, newItems...)
	if s.StillRuns == nil {
		return nil, nil
	}
	var waiting []string
	var calls []json.RawMessage
	for _, item := range newItems {
		callID, output := outputIn(item)
		tool, arguments, runs := s.StillRuns(output)
		if !runs {
			continue
		}
		if !slices.Contains(s.polls.callIDs, callID) {
			s.polls.unawaitedRuns = true
			continue
		}
		place := fmt.Sprintf("%d_%d_%d", s.turnsTaken, s.polls.count+1, len(calls)+1)
		input, err := rawitem.Encode(arguments)
		if err != nil {
			return nil, err
		}
		id := "poll_" + place
		call, err := rawitem.Encode(rawitem.FunctionCall(id, id, tool, string(input), nil))
		if err != nil {
			return nil, err
		}
		waiting, calls = append(waiting, id), append(calls, call)
	}
	s.polls.callIDs = waiting
	if calls == nil {
		return nil, nil
	}
	s.polls.count++
	return &model.Response{ID: fmt.Sprintf("%s%d_poll_%d", scriptedID, s.turnsTaken, s.polls.count), Status: "completed", Output: calls}, nil
}

// stillRunsAdvice is the advice for a missing text while a command runs.
const stillRunsAdvice = "a command still runs, perhaps since this machine is slow: give its call until: ended, which waits for it however long it takes. Else "

// outputIn returns the call ID and the first text of an output item. Both are "" for other items.
func outputIn(item json.RawMessage) (callID, text string) {
	var o struct {
		CallID string          `json:"call_id"`
		Output json.RawMessage `json:"output"`
	}
	if json.Unmarshal(item, &o) != nil || len(o.Output) == 0 {
		return "", ""
	}
	if json.Unmarshal(o.Output, &text) == nil {
		return o.CallID, text
	}
	var parts []struct{ Text string }
	if json.Unmarshal(o.Output, &parts) == nil && len(parts) > 0 {
		text = parts[0].Text
	}
	return o.CallID, text
}
