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

// intake receives an answer and runs each call once its item is complete. If the answer breaks off,
// items up to the last started call are kept as a complete answer, so no call runs twice. Later
// calls are dropped. See tools.Batch for the starting order.
type intake struct {
	c        *Conversation
	speaking bool               // words alone are asked for: no call is run, and none counts
	ctx      context.Context    // of the calls
	abort    context.CancelFunc // ends the calls that run, and is called in any case
	intaken
}

// intaken is the received part of one attempt at an answer.
type intaken struct {
	callitem.Answer
	batch   *tools.Batch
	ids     rawitem.CallIDs
	items   []json.RawMessage
	upTo    []int  // of each call: the items there are with its own
	handed  int    // calls that the tools were given, the first ones
	unrun   string // why the calls behind those are not run
	problem error  // with the first item that cannot be read
	kept    bool   // the answer broke off, and this is what stays of it
	refused string // why the call of the last item is not looked at
	cutDown bool   // an item is not as it came
}

func (c *Conversation) intake(ctx context.Context, speaking bool) *intake {
	ctx, abort := context.WithCancel(ctx)
	return &intake{c, speaking, ctx, abort, intaken{batch: c.Tools.Begin(ctx), ids: c.ids.Within()}}
}

// item takes the next item.
func (t *intake) item(raw json.RawMessage) {
	before := len(t.Calls)
	raw, err := t.named(raw)
	if err == nil {
		raw, err = t.bounded(raw)
	}
	if err == nil {
		err = t.Add(raw)
	}
	if err != nil && t.problem == nil {
		t.problem = err
	}
	t.items = append(t.items, raw)
	if len(t.Calls) == before || t.problem != nil {
		return
	}
	t.upTo = append(t.upTo, len(t.items))
	t.Calls[before].Refused = t.refused
	t.Calls[before] = numbered(t.Calls[before], t.c.numbered+len(t.Calls), t.c.spent.Turns, t.c.Name)
	if t.unrun == "" {
		t.unrun = t.obstacle()
	}
	if t.unrun == "" {
		t.handed++
		t.batch.Start(t.Calls[before])
	}
}

// Outputs of calls not run, and messages after them.
const (
	cutWords      = "Not run: the answer breaks off in this call or in one before it. Make it again."
	limitWords    = transcript.LimitWords
	speakingWords = "Not run: this answer was to be words alone."
)

// obstacle is why the last call, and those behind it, are not run.
func (t *intake) obstacle() string {
	switch {
	case t.speaking:
		return speakingWords
	case t.Cut:
		return cutWords
	case !t.c.mayCall(func(limit int) bool { return t.c.counted.call(t.made(), limit) }):
		return limitWords
	}
	return ""
}

// broken handles the loss of an answer, maybe repeatedly. Without a started call nothing is kept:
// the next attempt starts at its first item.
func (t *intake) broken() (kept bool) {
	if t.kept {
		return true
	}
	started := t.batch.Discard()
	if started == 0 {
		t.batch.Wait()
		t.intaken = intaken{batch: t.c.Tools.Begin(t.ctx), ids: t.c.ids.Within()}
		t.c.counted.settle(t.made())
		return false
	}
	calls := t.Calls[:started]
	t.items, t.Answer = t.items[:t.upTo[started-1]], callitem.Answer{}
	for _, item := range t.items {
		_ = t.Add(item) // an item that cannot be read keeps calls behind it from starting
	}
	t.Calls, t.handed, t.kept = calls, started, true
	return true
}

// settle counts the received calls.
func (t *intake) settle() {
	numbered := len(t.Calls)
	if t.speaking {
		numbered = 0
	}
	t.c.count(numbered, t.handed, t.Hosted)
	t.c.counted.settle(t.c.spent.Calls)
}

// made is how many calls count, with those of the answer so far.
func (t *intake) made() int { return t.c.spent.Calls + t.Hosted + t.handed }

// drop discards an answer.
func (t *intake) drop() {
	t.batch.Discard()
	t.abort()
	t.batch.Wait()
}

// outputs waits for the calls. It returns the output items in order, and the results of calls run.
func (t *intake) outputs() (items []json.RawMessage, results []tools.Result, err error) {
	defer t.abort()
	results = t.batch.Wait()
	results = append(results, t.c.inTurn(t.ctx, t.Calls[len(results):t.handed], false)...) // those that were written
	items, err = callitem.Outputs(t.Calls, t.c.definitions, func(n int, _ tools.Call) tools.Result {
		if n < len(results) {
			return results[n]
		}
		return tools.Refuse(t.unrun)
	})
	return append(items, t.Denials...), results, err
}

// named returns an item for the conversation and its record, giving local calls their own IDs.
// Items paired by the API stay unchanged.
func (t *intake) named(raw json.RawMessage) (json.RawMessage, error) {
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
		t.cutDown = true
	}
	return own, nil
}

// bounded returns an item for the conversation. A call with an input over tools.MaxInput is refused
// and stored without it: every later request would repeat the input.
func (t *intake) bounded(raw json.RawMessage) (json.RawMessage, error) {
	if t.refused = ""; len(raw) <= tools.MaxInput {
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
	t.refused = fmt.Sprintf("%s: the arguments have %d bytes, more than the %d that a call may have, and were thrown away unread. "+
		"Do it in several smaller calls, or have a command make what is large.", call.Name, len(call.Input), tools.MaxInput)
	t.cutDown = true
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
			item[key] = emptied(inner)
		}
	}
	return item
}

// emptied empties an object's long texts and lists.
func emptied(object map[string]any) map[string]any {
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
