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
)

// answerIntake receives an answer and starts each call when its item is complete. If the answer breaks
// off, the items up to the last started call count as a complete answer, so that no call runs twice.
// Later items are dropped. tools.Batch decides when a call starts.
type answerIntake struct {
	c           *Conversation
	wordsOnly   bool               // the request asked for text only: no call runs or counts
	ctx         context.Context    // context of the calls
	cancelCalls context.CancelFunc // stops running calls; always called, to free ctx
	receivedAnswer
}

// sortedAnswer is an answer whose first handedOver calls run. The rest is refused with whyNotRun.
type sortedAnswer struct {
	callitem.Answer
	handedOver int    // number of calls that run
	whyNotRun  string // why the rest does not run; "" while all do
}

// sortLast decides whether the last call runs, and reports that. After a call that does not run, no later
// call runs. mayCall counts the call, or returns false at the limit.
func (a *sortedAnswer) sortLast(mayCall func() bool) bool {
	switch {
	case a.whyNotRun != "":
	case a.Cut:
		a.whyNotRun = cutWords
	case !mayCall():
		a.whyNotRun = limitWords
	default:
		a.handedOver++
	}
	return a.whyNotRun == ""
}

// receivedAnswer is the received part of one attempt at an answer.
type receivedAnswer struct {
	sortedAnswer
	batch         *tools.Batch
	ids           rawitem.CallIDs
	items         []json.RawMessage
	itemsUpToCall []int  // for each call, the number of items up to and including its own
	parseError    error  // error of the first item that cannot be read
	interrupted   bool   // the answer broke off; the received items are kept
	refusedInput  string // why the call in the latest item is refused for its size, or ""
	inputRemoved  bool   // items differ from what the API sent: an ID or an input was replaced
}

// newIntake returns the intake for one request. wordsOnly means that the request asked for text only.
func (c *Conversation) newIntake(ctx context.Context, wordsOnly bool) *answerIntake {
	ctx, abort := context.WithCancel(ctx)
	t := &answerIntake{c: c, wordsOnly: wordsOnly, ctx: ctx, cancelCalls: abort}
	t.begin()
	return t
}

// begin forgets what was received, for the next attempt of the request.
func (t *answerIntake) begin() {
	t.receivedAnswer = receivedAnswer{batch: t.c.Tools.Begin(t.ctx), ids: t.c.ids.Within()}
	if t.wordsOnly {
		t.whyNotRun = speakingWords
	}
}

// takeItem takes the next item of the answer and starts its call, if it has one. After an item that cannot
// be read, no call starts.
func (t *answerIntake) takeItem(raw json.RawMessage) {
	before := len(t.Calls)
	raw, err := t.withOwnIDs(raw)
	if err == nil {
		raw, err = t.withInputLimit(raw)
	}
	if err == nil {
		err = t.Add(raw)
	}
	if err != nil && t.parseError == nil {
		t.parseError = err
	}
	t.items = append(t.items, raw)
	if len(t.Calls) == before || t.parseError != nil {
		return
	}
	t.itemsUpToCall = append(t.itemsUpToCall, len(t.items))
	t.Calls[before].Refused = t.refusedInput
	t.Calls[before] = withNumber(t.Calls[before], t.c.callNumber+len(t.Calls), t.c.spent.Turns, t.c.Name)
	if t.sortLast(t.mayCall) {
		t.batch.Start(t.Calls[before])
	}
}

// mayCall counts another call of the answer and returns true, or returns false at the limit.
func (t *answerIntake) mayCall() bool {
	return t.c.mayCall(func(limit int) bool { return t.c.callCount.countCall(t.callsMade(), limit) })
}

// Outputs of calls that did not run.
const (
	cutWords      = "Not run: the answer breaks off in this call or in one before it. Make it again."
	limitWords    = transcript.LimitWords
	speakingWords = "Not run: this answer was to be words alone."
)

// keepInterrupted decides what to keep of an answer that broke off. It reports whether it keeps the items up
// to the last started call. Without a started call it keeps nothing, and the request can be repeated.
// Calling it again changes nothing.
func (t *answerIntake) keepInterrupted() (kept bool) {
	if t.interrupted {
		return true
	}
	started := t.batch.Discard()
	if started == 0 {
		t.batch.Wait()
		t.begin()
		t.c.callCount.setCalls(t.callsMade())
		return false
	}
	calls := t.Calls[:started]
	t.items, t.Answer = t.items[:t.itemsUpToCall[started-1]], callitem.Answer{}
	for _, item := range t.items {
		_ = t.Add(item) // an item that cannot be read keeps calls behind it from starting
	}
	t.Calls, t.handedOver, t.interrupted = calls, started, true
	return true
}

// countCalls adds the calls of the answer to those of the conversation.
func (t *answerIntake) countCalls() {
	numbered := len(t.Calls)
	if t.wordsOnly {
		numbered = 0
	}
	t.c.countCalls(numbered, t.handedOver+t.Hosted)
	t.c.callCount.setCalls(t.c.spent.Calls)
}

// callsMade returns the number of calls that count, including those of the answer so far.
func (t *answerIntake) callsMade() int { return t.c.spent.Calls + t.Hosted + t.handedOver }

// discard stops the calls of the answer and waits for them. Their results are lost.
func (t *answerIntake) discard() {
	t.batch.Discard()
	t.cancelCalls()
	t.batch.Wait()
}

// outputs waits for the calls. It returns an output item for each call, in order, and the results of the
// calls that ran. Calls that models without tools wrote run here, since they are not in the batch.
func (t *answerIntake) outputs() (items []json.RawMessage, results []tools.Result, err error) {
	defer t.cancelCalls()
	results = t.batch.Wait()
	results = append(results, t.c.runWrittenCalls(t.ctx, t.Calls[len(results):t.handedOver], false)...)
	items, err = callitem.Outputs(t.Calls, t.c.definitions, func(n int, _ tools.Call) tools.Result {
		if n < len(results) {
			return results[n]
		}
		return tools.Refuse(t.whyNotRun)
	})
	return append(items, t.Denials...), results, err
}

// withOwnIDs returns the item as the conversation keeps it. A call of a local tool gets an ID that is
// unique in the conversation. Other items stay unchanged, because the API pairs them itself.
func (t *answerIntake) withOwnIDs(raw json.RawMessage) (json.RawMessage, error) {
	var item callitem.OutputItem
	_ = json.Unmarshal(raw, &item) // Answer.Add reports the error
	if _, ours := item.Call(); !ours {
		return raw, nil
	}
	own, err := t.ids.Own(raw, t.c.spent.Turns, len(t.Calls)+1)
	if err != nil {
		return raw, err
	}
	if !bytes.Equal(own, raw) {
		t.inputRemoved = true
	}
	return own, nil
}

// withInputLimit returns the item as the conversation keeps it. It removes a call's input over
// tools.MaxInput, which every later request would repeat, and sets refusedInput to refuse the call.
func (t *answerIntake) withInputLimit(raw json.RawMessage) (json.RawMessage, error) {
	if t.refusedInput = ""; len(raw) <= tools.MaxInput {
		return raw, nil
	}
	var item callitem.OutputItem
	if err := json.Unmarshal(raw, &item); err != nil {
		return raw, fmt.Errorf("read output item: %w", err)
	}
	call, ours := item.Call()
	if !ours || len(call.Input) <= tools.MaxInput {
		return raw, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var parts map[string]any
	if err := decoder.Decode(&parts); err != nil {
		return raw, fmt.Errorf("read output item: %w", err)
	}
	short, err := rawitem.Encode(withoutInput(parts))
	if err != nil {
		return raw, err
	}
	t.refusedInput = fmt.Sprintf("%s: the arguments have %d bytes, more than the %d that a call may have, and were thrown away unread. "+
		"Do it in several smaller calls, or have a command make what is large.", call.Name, len(call.Input), tools.MaxInput)
	t.inputRemoved = true
	return short, nil
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
