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
	spent           Spent
	found           foundTools
	callNumber      int // of the last numbered call
	ids             rawitem.CallIDs
	lastWords       string
	editFailures    editFailures
	recorded        json.RawMessage // settings as the transcript last saw them
	lastTurnMessage string          // in the last answered request
}

// position is how far a conversation is.
type position struct {
	history     []json.RawMessage
	sentItems   int // up to the last answer
	loggedItems int
	measure     tokenCount
}

// add puts items into the conversation before the next request.
func (s *state) add(items []json.RawMessage) {
	s.history = append(s.history, items...)
	s.ids.Note(items...) // a conversation may begin with that of another agent
}

// addAnswerItems adds an answer's items. usage is nil for an interrupted answer.
func (s *state) addAnswerItems(items []json.RawMessage, usage *model.Usage) {
	s.measure.lastAnswer = len(s.history)
	s.add(items)
	s.sentItems, s.loggedItems = len(s.history), len(s.history)
	if usage != nil {
		s.measure.tokens, s.measure.items, s.measure.reportedTools = usage.Input+usage.Output, len(s.history), len(s.found.added)
	}
}

// countCalls counts an answer's calls: the numbered ones, and those made by tools or by the API.
func (s *state) countCalls(numbered, made int) {
	s.callNumber += numbered
	s.spent.Calls += made
}

// recordResult records the result of a call.
func (s *state) recordResult(call tools.Call, result tools.Result) {
	s.found.recordCall(call, result)
	s.editFailures.count(call, result.Failed)
}

// replace puts another conversation, mostly a shorter one, in the place of the history.
func (s *state) replace(items []json.RawMessage, reason string) {
	told := s.measure.reportedTools
	s.history = slices.Clip(items)
	s.ids.Note(items...)
	if shortens(reason) {
		s.found.forgetUnused(items, told)
	}
	s.resendFrom(len(items))
}

// removeItems removes items unreadable for the next model.
func (s *state) removeItems(places []int) {
	s.history = rawitem.Without(s.history, places)
	s.resendFrom(s.loggedItems - len(places))
}

// resendFrom makes the next request carry the whole history. The transcript has its first logged items.
func (s *state) resendFrom(logged int) {
	s.position = position{history: s.history, loggedItems: logged, measure: tokenCount{lastAnswer: len(s.history), reportedTools: len(s.found.added)}}
}
