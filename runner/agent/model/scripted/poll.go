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

// still reads the output of a call. If something started by the call still runs, it returns the
// tool and arguments to wait for it.
type still func(output string) (tool string, arguments map[string]any, runs bool)

// polls are the answers between two turns. The next turn waits for the last one's calls with the
// key until.
type polls struct {
	of    []string          // ids of the calls whose outputs are looked at next
	heard []json.RawMessage // all that was new to the model since the last turn
	asked int               // answers so far
	runs  bool              // something that no call waits for
}

// poll returns an answer that waits for running calls, or nil if none runs. fresh are the items new
// to the model.
func (s *Script) poll(fresh []json.RawMessage) (*model.Response, error) {
	s.polls.heard = append(s.polls.heard, fresh...)
	var waiting []string
	var calls []json.RawMessage
	for _, item := range fresh {
		of, output := outputIn(item)
		tool, arguments, runs := s.runs(output)
		if !runs {
			continue
		}
		if !slices.Contains(s.polls.of, of) {
			s.polls.runs = true
			continue
		}
		place := fmt.Sprintf("%d_%d_%d", s.asked, s.polls.asked+1, len(calls)+1)
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
	s.polls.of = waiting
	if calls == nil {
		return nil, nil
	}
	s.polls.asked++
	return &model.Response{ID: fmt.Sprintf("%s%d_poll_%d", scriptedID, s.asked, s.polls.asked), Status: "completed", Output: calls}, nil
}

func (s *Script) runs(output string) (tool string, arguments map[string]any, runs bool) {
	if s.Still == nil {
		return "", nil, false
	}
	return s.Still(output)
}

// stillRuns is the advice for a mismatch while a command runs.
const stillRuns = "a command still runs, perhaps since this machine is slow: give its call until: ended, which waits for it however long it takes. Else "

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
