package agent

import (
	"encoding/json"
	"slices"

	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
	"github.com/agent-ci/agent-ci/tools"
)

// state is a conversation so far. A conversation at work and a fold of its record change it by the same
// methods.
type state struct {
	position
	spent    Spent
	found    foundTools
	numbered int // calls that got a number
	ids      rawitem.CallIDs
	said     string // the last words
	tries    tries
	recorded json.RawMessage // settings as the transcript last saw them
	lastTold string          // that its turn is the last, in the request whose answer a killed run had last
}

// position is how far a conversation is.
type position struct {
	history []json.RawMessage
	sent    int // items up to the last answer
	logged  int // items that the transcript has
	measure measure
}

// add puts items into the conversation before the next request.
func (s *state) add(items []json.RawMessage) {
	s.history = append(s.history, items...)
	s.ids.Note(items...) // a conversation may begin with that of another agent
}

// answered adds an answer's items. usage is nil for an interrupted answer.
func (s *state) answered(items []json.RawMessage, usage *model.Usage) {
	s.measure.lastAnswer = len(s.history)
	s.add(items)
	s.sent, s.logged = len(s.history), len(s.history)
	if usage != nil {
		s.measure.tokens, s.measure.items, s.measure.found = usage.Input+usage.Output, len(s.history), len(s.found.Added)
	}
}

// count counts an answer's calls: numbered ones, those given to tools, and those run by the API.
func (s *state) count(numbered, handed, hosted int) {
	s.numbered += numbered
	s.spent.Calls += handed + hosted
	s.spent.Hosted += hosted
}

// took records the result of a call.
func (s *state) took(call tools.Call, result tools.Result) {
	s.found.adopt(call, result)
	s.tries.see(call, result.Failed)
}

// replace puts another conversation, mostly a shorter one, in the place of the history.
func (s *state) replace(items []json.RawMessage, reason string) {
	told := s.measure.found
	s.history = slices.Clip(items)
	s.ids.Note(items...)
	if shortens(reason) {
		s.found.shortened(items, told)
	}
	s.begin(len(items))
}

// leaveOut removes items unreadable for the next model.
func (s *state) leaveOut(places []int) {
	s.history = rawitem.Without(s.history, places)
	s.begin(s.logged - len(places))
}

// begin makes the next request carry the whole history. The transcript has its first logged items.
func (s *state) begin(logged int) {
	s.position = position{history: s.history, logged: logged, measure: measure{lastAnswer: len(s.history), found: len(s.found.Added)}}
}
