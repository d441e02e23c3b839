package audit

import (
	"strings"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// session identifies a command with several calls.
type session struct {
	agent string
	id    float64
}

// sessions are commands that still ran when their first call returned. The output by then depends
// on their speed, so all calls' outputs are compared together, at the last one.
type sessions struct {
	sessionOf map[transcript.CallRef]session
	lastCalls map[session]transcript.CallRef
	outputs   map[session]*Difference // the outputs so far
}

// findSessions returns the sessions of recorded calls. polled has, by call, the session that write_stdin names. It ignores
// a call that names a session that no earlier call has begun.
func findSessions(calls []transcript.ToolFinished, polled map[transcript.CallRef]float64) sessions {
	s := sessions{map[transcript.CallRef]session{}, map[session]transcript.CallRef{}, map[session]*Difference{}}
	for _, call := range calls {
		id := call.Session()
		began := id != 0
		if !began {
			id = polled[call.Ref()]
		}
		if id == 0 { // the call has no session
			continue
		}
		key := session{call.Agent, id}
		if _, known := s.lastCalls[key]; began || known {
			s.sessionOf[call.Ref()], s.lastCalls[key] = key, call.Ref()
		}
	}
	return s
}

// joinWithEarlier prepends the outputs of the session's earlier calls to d. hasLater is true if a later call of
// the session follows; the outputs are compared at the last call.
func (s sessions) joinWithEarlier(ref transcript.CallRef, d *Difference) (hasLater bool) {
	key, known := s.sessionOf[ref]
	if !known {
		return false
	}
	before := s.outputs[key]
	if before == nil {
		before = new(Difference)
	}
	d.Recorded, d.Replayed = joinOutputs(before.Recorded, d.Recorded), joinOutputs(before.Replayed, d.Replayed)
	s.outputs[key] = d
	return s.lastCalls[key] != ref
}

// joinOutputs appends an output to the earlier output of its session. It keeps only the last header.
func joinOutputs(before, output string) string {
	const mark = "Output:\n"
	_, printed, _ := strings.Cut(before, mark)
	head, rest, _ := strings.Cut(output, mark)
	return head + mark + printed + rest
}
