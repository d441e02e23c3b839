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

// answerIntake receives an answer and runs each call once its item is complete. If the answer breaks off,
// items up to the last started call are kept as a complete answer, so no call runs twice. Later
// calls are dropped. See tools.Batch for the starting order.
type answerIntake struct {
	c           *Conversation
	wordsOnly   bool               // words alone are asked for: no call is run, and none counts
	ctx         context.Context    // of the calls
	cancelCalls context.CancelFunc // ends the calls that run, and is called in any case
	receivedAnswer
}

// sortedAnswer is an answer whose calls are sorted: the first ones run, the others are refused.
type sortedAnswer struct {
	callitem.Answer
	handedOver int    // number of calls given to the tools
	whyNotRun  string // the reason for not running the other calls
}

// sortLast reports whether the last call runs. Once a call does not run, no later one does.
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
	itemsUpToCall []int  // of each call: the number of items up to and including its own
	parseError    error  // with the first item that cannot be read
	interrupted   bool   // the answer broke off; the received items are kept
	refusedInput  string // why the call of the last item is not looked at
	inputRemoved  bool   // of an item
}

func (c *Conversation) newIntake(ctx context.Context, speaking bool) *answerIntake {
	ctx, abort := context.WithCancel(ctx)
	t := &answerIntake{c: c, wordsOnly: speaking, ctx: ctx, cancelCalls: abort}
	t.begin()
	return t
}

// begin begins an attempt at an answer.
func (t *answerIntake) begin() {
	t.receivedAnswer = receivedAnswer{batch: t.c.Tools.Begin(t.ctx), ids: t.c.ids.Within()}
	if t.wordsOnly {
		t.whyNotRun = speakingWords
	}
}

// takeItem takes the next item.
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

// mayCall reports whether the limit allows another call of the answer, and counts it.
func (t *answerIntake) mayCall() bool {
	return t.c.mayCall(func(limit int) bool { return t.c.callCount.countCall(t.callsMade(), limit) })
}

// Outputs of calls not run, and messages after them.
const (
	cutWords      = "Not run: the answer breaks off in this call or in one before it. Make it again."
	limitWords    = transcript.LimitWords
	speakingWords = "Not run: this answer was to be words alone."
)

// keepInterrupted handles the loss of an answer, maybe repeatedly. Without a started call nothing is kept:
// the next attempt starts at its first item.
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

// countCalls counts the received calls.
func (t *answerIntake) countCalls() {
	numbered := len(t.Calls)
	if t.wordsOnly {
		numbered = 0
	}
	t.c.countCalls(numbered, t.handedOver+t.Hosted)
	t.c.callCount.setCalls(t.c.spent.Calls)
}

// callsMade is how many calls count, with those of the answer so far.
func (t *answerIntake) callsMade() int { return t.c.spent.Calls + t.Hosted + t.handedOver }

// discard discards an answer.
func (t *answerIntake) discard() {
	t.batch.Discard()
	t.cancelCalls()
	t.batch.Wait()
}

// outputs waits for the calls. It returns the output items in order, and the results of calls run.
func (t *answerIntake) outputs() (items []json.RawMessage, results []tools.Result, err error) {
	defer t.cancelCalls()
	results = t.batch.Wait()
	results = append(results, t.c.runWrittenCalls(t.ctx, t.Calls[len(results):t.handedOver], false)...) // those that were written
	items, err = callitem.Outputs(t.Calls, t.c.definitions, func(n int, _ tools.Call) tools.Result {
		if n < len(results) {
			return results[n]
		}
		return tools.Refuse(t.whyNotRun)
	})
	return append(items, t.Denials...), results, err
}

// withOwnIDs returns an item for the conversation and its record, giving local calls their own IDs.
// Items paired by the API stay unchanged.
func (t *answerIntake) withOwnIDs(raw json.RawMessage) (json.RawMessage, error) {
	var item callitem.OutputItem
	_ = json.Unmarshal(raw, &item) // whoever reads on tells what is wrong
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

// withInputLimit returns an item for the conversation. A call with an input over tools.MaxInput is refused
// and stored without it: every later request would repeat the input.
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

// withoutInput empties a call's input but keeps its types, for the API.
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

// emptyLongValues empties an object's long texts and lists.
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
