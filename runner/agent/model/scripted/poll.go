package scripted

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
)

// untilEnded is the value of the key until: the next turn waits for the end.
const untilEnded = "ended"

// waitCall reads the output of a call. If something started by the call still runs, it returns the
// tool and arguments to wait for it.
type waitCall func(output string) (tool string, arguments map[string]any, runs bool)

// pollState tracks the answers between two turns. The next turn waits for the last one's calls with the
// key until.
type pollState struct {
	callIDs       []string          // ids of the calls whose outputs are looked at next
	newItems      []json.RawMessage // all that was new to the model since the last turn
	count         int               // answers so far
	unawaitedRuns bool              // something that no call waits for
}

// poll returns an answer that waits for running calls, or nil if none runs. newItems are the items new
// to the model.
func (s *Script) poll(newItems []json.RawMessage) (*model.Response, error) {
	s.polls.newItems = append(s.polls.newItems, newItems...)
	var waiting []string
	var calls []json.RawMessage
	for _, item := range newItems {
		callID, output := outputIn(item)
		tool, arguments, runs := s.stillRuns(output)
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

func (s *Script) stillRuns(output string) (tool string, arguments map[string]any, runs bool) {
	if s.StillRuns == nil {
		return "", nil, false
	}
	return s.StillRuns(output)
}

// stillRunsAdvice is the advice for a mismatch while a command runs.
const stillRunsAdvice = "a command still runs, perhaps since this machine is slow: give its call until: ended, which waits for it however long it takes. Else "

// outputIn returns an output's call id and its first text. Both are empty for other items.
func outputIn(item json.RawMessage) (id, text string) {
	var o struct {
		CallID string          `json:"call_id"`
		Output json.RawMessage `json:"output"`
	}
	if json.Unmarshal(item, &o) != nil || len(o.Output) == 0 {
		return "", ""
	}
	var parts []struct{ Text string }
	if json.Unmarshal(o.Output, &text) != nil && json.Unmarshal(o.Output, &parts) == nil && len(parts) > 0 {
		text = parts[0].Text
	}
	return o.CallID, text
}
