package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/agent-ci/agent-ci/policy/plainjson"
	"github.com/agent-ci/agent-ci/runner/agent/callitem"
	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/schema"
)

// answerIntake receives an answer and starts each call when its item is complete. If the answer breaks
// off, the items up to the last started call count as a complete answer, so that no call runs twice.
// Later items are dropped. tools.Batch decides when a call starts.
type answerIntake struct {
	conversation *Conversation
	wordsOnly    bool               // the request asked for text only: no call runs or counts
	ctx          context.Context    // context of the calls
	cancelCalls  context.CancelFunc // stops running calls; always called, to free ctx
	receivedAnswer
}

// admittedAnswer is an answer whose first admitted calls run. The rest is refused with whyNotRun.
type admittedAnswer struct {
	callitem.Answer
	admitted  int    // number of calls that run
	whyNotRun string // why the rest does not run; "" while all do
}

// admitLastCall decides whether the last call runs. If not, it sets whyNotRun. countCall counts the call, or
// returns false at the limit.
func (a *admittedAnswer) admitLastCall(countCall func() bool) (runs bool) {
	switch {
	case a.whyNotRun != "": // no call runs after one that does not
	case a.LastCallCut:
		a.whyNotRun = brokenOffRefusal
	case !countCall():
		a.whyNotRun = limitRefusal
	default:
		a.admitted++
	}
	return a.whyNotRun == ""
}

// receivedAnswer is the received part of one attempt at an answer.
type receivedAnswer struct {
	admittedAnswer
	batch         *tools.Batch
	ids           rawitem.CallIDs
	items         []json.RawMessage
	itemsUpToCall []int // for each call, the number of items up to and including its own
	parseError    error // error of the first item that cannot be read
	interrupted   bool  // the answer broke off; the received items are kept
	itemsChanged  bool  // items differ from what the API sent: an ID or an input was replaced
}

// newIntake returns the intake for one request. wordsOnly means that the request asked for text only.
func (c *Conversation) newIntake(ctx context.Context, wordsOnly bool) *answerIntake {
	ctx, cancelCalls := context.WithCancel(ctx)
	a := &answerIntake{conversation: c, wordsOnly: wordsOnly, ctx: ctx, cancelCalls: cancelCalls}
	a.reset()
	return a
}

// reset forgets what was received, for the next attempt of the request.
func (a *answerIntake) reset() {
	a.receivedAnswer = receivedAnswer{batch: a.conversation.Tools.Begin(a.ctx), ids: a.conversation.ids.ForAnswer()}
	if a.wordsOnly {
		a.whyNotRun = wordsOnlyRefusal
	}
}

// TakeItem adds the next item of the answer and starts its call, if it is one. After an item that cannot
// be read, no call starts.
func (a *answerIntake) TakeItem(raw json.RawMessage) {
	callsBefore := len(a.Calls)
	var tooLong string
	raw, err := a.withUniqueID(raw)
	if err == nil {
		raw, tooLong, err = a.withInputLimit(raw)
	}
	if err == nil {
		err = a.Add(raw)
	}
	if err != nil && a.parseError == nil {
		a.parseError = err
	}
	a.items = append(a.items, raw)
	isCall := len(a.Calls) > callsBefore
	if !isCall || a.parseError != nil {
		return
	}
	a.itemsUpToCall = append(a.itemsUpToCall, len(a.items))
	call := &a.Calls[callsBefore]
	call.Refused = tooLong
	*call = withNumber(*call, a.conversation.callNumber+len(a.Calls), a.conversation.spent.Turns, a.conversation.Name)
	if a.admitLastCall(a.countNextCall) {
		a.batch.Start(*call)
	}
}

// countNextCall counts another call of the answer and returns true, or returns false at the limit.
func (a *answerIntake) countNextCall() bool {
	counter := &a.conversation.callCount
	counter.setCalls(a.callsMade())
	return a.conversation.countCall(&counter.direct)
}

// Outputs of calls that did not run.
const (
	brokenOffRefusal = "Not run: the answer breaks off in this call or in one before it. Make it again."
	limitRefusal     = transcript.LimitWords
	wordsOnlyRefusal = "Not run: this answer was to be words alone."
)

// KeepInterrupted keeps the items of an interrupted answer up to its last started call, and drops the rest. If no
// call has started, it drops everything and returns false: the request can be repeated. Calling it again changes
// nothing.
func (a *answerIntake) KeepInterrupted() (kept bool) {
	if a.interrupted {
		return true
	}
	started := a.batch.Discard()
	if started == 0 {
		a.batch.Wait()
		a.reset()
		a.conversation.callCount.setCalls(a.callsMade())
		return false
	}
	startedCalls := a.Calls[:started]
	a.items = a.items[:a.itemsUpToCall[started-1]]
	a.Answer = callitem.Answer{} // without the texts and hosted calls of the dropped items
	for _, item := range a.items {
		_ = a.Add(item) // an item that cannot be read keeps calls behind it from starting
	}
	a.Calls, a.admitted, a.interrupted = startedCalls, started, true
	return true
}

// countCalls adds the calls of the answer to those of the conversation.
func (a *answerIntake) countCalls() {
	numbered := len(a.Calls)
	if a.wordsOnly {
		numbered = 0
	}
	a.conversation.countCalls(numbered, a.admitted+a.Hosted)
	a.conversation.callCount.setCalls(a.conversation.spent.Calls)
}

// callsMade returns the number of calls that count, including those of the answer so far.
func (a *answerIntake) callsMade() int { return a.conversation.spent.Calls + a.Hosted + a.admitted }

// discard stops the calls of the answer and waits for them. Their results are lost.
func (a *answerIntake) discard() {
	a.batch.Discard()
	a.cancelCalls()
	a.batch.Wait()
}

// outputs waits for the calls. It returns an output item for each call, in order, and the results of the
// calls that ran. It first runs the calls written in the answer's text, which are not in the batch.
func (a *answerIntake) outputs() (items []json.RawMessage, results []tools.Result, err error) {
	defer a.cancelCalls()
	results = a.batch.Wait()
	results = append(results, a.conversation.runWrittenCalls(a.ctx, a.Calls[len(results):a.admitted], false)...)
	items, err = callitem.Outputs(a.Calls, a.conversation.definitions, func(n int, _ tools.Call) tools.Result {
		if n < len(results) {
			return results[n]
		}
		return tools.Refuse(a.whyNotRun)
	})
	return append(items, a.Denials...), results, err
}

// withUniqueID replaces the ID of a local tool's call by one that is unique in the conversation. It returns other
// items unchanged, because the API pairs their IDs itself.
func (a *answerIntake) withUniqueID(raw json.RawMessage) (json.RawMessage, error) {
	var item callitem.OutputItem
	_ = json.Unmarshal(raw, &item) // Answer.Add reports the error
	if _, isLocal := item.Call(); !isLocal {
		return raw, nil
	}
	unique, err := a.ids.MakeUnique(raw, a.conversation.spent.Turns, len(a.Calls)+1)
	if err != nil {
		return raw, err
	}
	if !bytes.Equal(unique, raw) {
		a.itemsChanged = true
	}
	return unique, nil
}

// withInputLimit removes the input of a call from its item if it exceeds tools.MaxInput, because every later
// request would repeat it. tooLong is the message that refuses such a call, and "" for other items.
func (a *answerIntake) withInputLimit(raw json.RawMessage) (item json.RawMessage, tooLong string, err error) {
	if len(raw) <= tools.MaxInput {
		return raw, "", nil
	}
	var output callitem.OutputItem
	if err := plainjson.Unmarshal(raw, &output); err != nil {
		return raw, "", fmt.Errorf("read output item: %w", err)
	}
	call, isLocal := output.Call()
	if !isLocal || len(call.Input) <= tools.MaxInput {
		return raw, "", nil
	}
	var parts map[string]any
	if err := schema.Exactly(string(raw), &parts); err != nil {
		return raw, "", fmt.Errorf("read output item: %w", err)
	}
	shortened, err := rawitem.Encode(withoutInput(parts))
	if err != nil {
		return raw, "", err
	}
	tooLong = fmt.Sprintf("%s: the arguments have %d bytes, more than the %d that a call may have, and were thrown away unread. "+
		"Do it in several smaller calls, or have a command make what is large.", call.Name, len(call.Input), tools.MaxInput)
	a.itemsChanged = true
	return shortened, tooLong, nil
}

// withoutInput empties the input in a call's item. It keeps each field's type, because the API checks it.
func withoutInput(item map[string]any) map[string]any {
	switch item["arguments"].(type) {
	case string:
		item["arguments"] = "{}"
	case map[string]any:
		item["arguments"] = map[string]any{}
	}
	if _, has := item["input"]; has {
		item["input"] = ""
	}
	for _, key := range [...]string{"operation", "action"} {
		if inner, isObject := item[key].(map[string]any); isObject {
			item[key] = emptyLongValues(inner)
		}
	}
	return item
}

// emptyLongValues empties the object's lists, inner objects and long strings.
func emptyLongValues(object map[string]any) map[string]any {
	const maxShort = 1 << 10 // bytes
	for key, value := range object {
		switch v := value.(type) {
		case string:
			if len(v) > maxShort {
				object[key] = ""
			}
		case []any:
			object[key] = []any{}
		case map[string]any:
			object[key] = map[string]any{}
		}
	}
	return object
}
