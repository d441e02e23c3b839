package audit

import (
	"encoding/json"
	"strings"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/tools/dialect"
)

// session is a command that several calls of an agent told of.
type session struct {
	agent string
	id    float64
}

// sessions are the commands of a record that still ran when the call which started them returned.
// How much a command has printed by then depends on how fast it is, so that the outputs of its calls
// are compared together, at the last one.
type sessions struct {
	of   map[transcript.CallRef]session
	last map[session]transcript.CallRef
	came map[session]*Difference // the outputs so far
}

// sessionsOf finds those of a record. polled are the sessions that calls of write_stdin name.
func sessionsOf(calls []transcript.ToolFinished, polled map[transcript.CallRef]float64) sessions {
	s := sessions{map[transcript.CallRef]session{}, map[session]transcript.CallRef{}, map[session]*Difference{}}
	for _, call := range calls {
		id, began := call.Detail["session_id"].(float64)
		if !began {
			id = polled[call.Ref()]
		}
		of := session{call.Agent, id}
		if _, known := s.last[of]; began || known && id != 0 {
			s.of[call.Ref()], s.last[of] = of, call.Ref()
		}
	}
	return s
}

// polls returns the sessions that calls of write_stdin name, by event.
func polls(d transcript.ToolStarted) (id float64) {
	var a struct {
		Session float64 `json:"session_id"`
	}
	if d.Tool == dialect.WriteStdin && json.Unmarshal([]byte(d.Input), &a) == nil {
		return a.Session
	}
	return 0
}

// join adds to the outputs of a call those of earlier calls of its session. more says that there are
// later calls, with which they are compared.
func (s sessions) join(ref transcript.CallRef, d *Difference) (more bool) {
	of, is := s.of[ref]
	if !is {
		return false
	}
	before := s.came[of]
	if before == nil {
		before = new(Difference)
	}
	d.Recorded, d.Replayed = joined(before.Recorded, d.Recorded), joined(before.Replayed, d.Replayed)
	s.came[of] = d
	return s.last[of] != ref
}

// joined returns an output with what was printed before, and the header of the last call.
func joined(before, output string) string {
	const mark = "Output:\n"
	_, printed, _ := strings.Cut(before, mark)
	head, rest, _ := strings.Cut(output, mark)
	return head + mark + printed + rest
}
