package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

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

// admitLastCall decides whether the last call runs, and reports that. After a call that does not run, no later
// call runs. countCall counts the call, or returns false at the limit.
func (a *admittedAnswer) admitLastCall(countCall func() bool) bool {
	switch {
	case a.whyNotRun != "":
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
	itemsUpToCall []int  // for each call, the number of items up to and including its own
	parseError    error  // error of the first item that cannot be read
	interrupted   bool   // the answer broke off; the received items are kept
	refusedInput  string // why the call in the latest item is refused for its size, or ""
	itemsChanged  bool   // items differ from what the API sent: an ID or an input was replaced
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

// takeItem takes the next item of the answer and starts its call, if it has one. After an item that cannot
// be read, no call starts.
func (a *answerIntake) takeItem(raw json.RawMessage) {
	before := len(a.Calls)
	raw, err := a.withOwnIDs(raw)
	if err == nil {
		raw, err = a.withInputLimit(raw)
	}
	if err == nil {
		err = a.Add(raw)
	}
	if err != nil && a.parseError == nil {
		a.parseError = err
	}
	a.items = append(a.items, raw)
	if len(a.Calls) == before || a.parseError != nil {
		return
	}
	a.itemsUpToCall = append(a.itemsUpToCall, len(a.items))
	a.Calls[before].Refused = a.refusedInput
	a.Calls[before] = withNumber(a.Calls[before], a.conversation.callNumber+len(a.Calls), a.conversation.spent.Turns, a.conversation.Name)
	if a.admitLastCall(a.countNextCall) {
		a.batch.Start(a.Calls[before])
	}
}

// countNextCall counts another call of the answer and returns true, or returns false at the limit.
func (a *answerIntake) countNextCall() bool {
	return a.conversation.withinCallLimit(func(limit int) bool { return a.conversation.callCount.countCall(a.callsMade(), limit) })
}

// Outputs of calls that did not run.
const (
	brokenOffRefusal = "Not run: the answer breaks off in this call or in one before it. Make it again."
	limitRefusal     = transcript.LimitWords
	wordsOnlyRefusal = "Not run: this answer was to be words alone."
)

// keepInterrupted decides what to keep of an answer that broke off. It reports whether it keeps the items up
// to the last started call. Without a started call it keeps nothing, and the request can be repeated.
// Calling it again changes nothing.
func (a *answerIntake) keepInterrupted() (kept bool) {
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
// calls that ran. Calls that models without tools wrote run here, since they are not in the batch.
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

// withOwnIDs returns the item as the conversation keeps it. A call of a local tool gets an ID that is
// unique in the conversation. Other items stay unchanged, because the API pairs them itself.
func (a *answerIntake) withOwnIDs(raw json.RawMessage) (json.RawMessage, error) {
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

// withInputLimit returns the item as the conversation keeps it. It removes a call's input over
// tools.MaxInput, which every later request would repeat, and sets refusedInput to refuse the call.
func (a *answerIntake) withInputLimit(raw json.RawMessage) (json.RawMessage, error) {
	a.refusedInput = ""
	if len(raw) <= tools.MaxInput {
		return raw, nil
	}
	var item callitem.OutputItem
	if err := json.Unmarshal(raw, &item); err != nil {
		return raw, fmt.Errorf("read output item: %w", err)
	}
	call, isLocal := item.Call()
	if !isLocal || len(call.Input) <= tools.MaxInput {
		return raw, nil
	}
	var parts map[string]any
	if err := schema.Exactly(string(raw), &parts); err != nil {
		return raw, fmt.Errorf("read output item: %w", err)
	}
	shortened, err := rawitem.Encode(withoutInput(parts))
	if err != nil {
		return raw, err
	}
	a.refusedInput = fmt.Sprintf("%s: the arguments have %d bytes, more than the %d that a call may have, and were thrown away unread. "+
		"Do it in several smaller calls, or have a command make what is large.", call.Name, len(call.Input), tools.MaxInput)
	a.itemsChanged = true
	return shortened, nil
}

// withoutInput empties the input of a call. It keeps the type of each field, because the API checks them.
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
		if inner, ok := item[key].(map[string]any); ok {
			item[key] = emptyLongValues(inner)
		}
	}
	return item
}

// emptyLongValues empties an object's lists, inner objects and texts over short bytes.
func emptyLongValues(object map[string]any) map[string]any {
	const short = 1 << 10
	for key, value := range object {
		switch v := value.(type) {
		case string:
			if len(v) > short {
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
