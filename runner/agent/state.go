package agent

import (
	"encoding/json"
	"slices"

	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/tools"
)

// state is the part of a conversation that its transcript can restore. The running Conversation and
// ResumeState, which reads the transcript, change it by the same methods.
type state struct {
	position
	spent            Spent
	found            foundTools
	callNumber       int // number of the last numbered call
	ids              rawitem.CallIDs
	lastWords        string
	editFailures     editFailures
	recordedSettings json.RawMessage // the settings recorded last
	lastTurnMessage  string          // message about the last turn in the latest request, or ""
}

// position is the history and how much of it was sent, recorded and measured.
type position struct {
	history     []json.RawMessage
	sentItems   int // number of items that the provider has, up to its last answer
	loggedItems int // number of items in the transcript
	lastCount   tokenCount
}

// add puts items into the conversation before the next request.
func (s *state) add(items []json.RawMessage) {
	s.history = append(s.history, rawitem.Compact(items)...)
	s.ids.NoteCalls(items...) // the items may be another agent's conversation, with call IDs of its own
}

// addAnswerItems adds an answer's items. usage is nil for an interrupted answer.
func (s *state) addAnswerItems(items []json.RawMessage, usage *model.Usage) {
	s.lastCount.lastAnswer = len(s.history)
	s.add(items)
	s.sentItems, s.loggedItems = len(s.history), len(s.history)
	if usage != nil {
		s.lastCount.tokens, s.lastCount.items, s.lastCount.reportedTools = usage.Input+usage.Output, len(s.history), len(s.found.byFunction)
	}
}

// countCalls counts an answer's calls. numbered is how many calls got a number, made is how many ran, including
// those that the API ran itself.
func (s *state) countCalls(numbered, made int) {
	s.callNumber += numbered
	s.spent.Calls += made
}

// noteResult notes the tools that a call found, and whether an edit failed.
func (s *state) noteResult(call tools.Call, result tools.Result) {
	s.found.noteCall(call, result)
	s.editFailures.countEdit(call, result.Failed)
}

// replace replaces the history by the items of a compaction. If reason means that they are shorter, it also
// forgets found tools that the model did not call.
func (s *state) replace(items []json.RawMessage, reason string) {
	reportedTools := s.lastCount.reportedTools
	s.history = slices.Clip(rawitem.Compact(items))
	s.ids.NoteCalls(items...)
	if reason != reasonInterrupted && reason != transcript.RefusedItems {
		s.found.forgetUnused(items, reportedTools)
	}
	s.resendAll(len(items))
}

// removeItems removes the items at these indexes, which the next model cannot read.
func (s *state) removeItems(indexes []int) {
	s.history = rawitem.WithoutIndexes(s.history, indexes)
	s.resendAll(s.loggedItems - len(indexes))
}

// resendAll makes the next request carry the whole history, and drops the provider's token count. loggedItems is the
// number of history items in the transcript.
func (s *state) resendAll(loggedItems int) {
	s.position = position{history: s.history, loggedItems: loggedItems, lastCount: tokenCount{lastAnswer: len(s.history), reportedTools: len(s.found.byFunction)}}
}
