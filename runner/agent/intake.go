package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/tools"
)

// intake takes an answer as it comes and hands each call to the tools when its
// item is whole. When the answer breaks off, the items up to the last call that
// has started stay, as an answer that ends there: those calls are not made
// again, and what they need in the history is there. Calls that have not
// started go with the rest of the answer. See tools.Batch for which start.
type intake struct {
	c        *Conversation
	speaking bool               // words alone are asked for: no call is run, and none counts
	ctx      context.Context    // of the calls
	abort    context.CancelFunc // ends the calls that run, and is called in any case
	intaken
}

// intaken is what was taken of one attempt at an answer.
type intaken struct {
	answer
	batch   *tools.Batch
	ids     model.CallIDs
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
	before := len(t.calls)
	raw, err := t.named(raw)
	if err == nil {
		raw, err = t.bounded(raw)
	}
	if err == nil {
		err = t.add(raw)
	}
	if err != nil && t.problem == nil {
		t.problem = err
	}
	t.items = append(t.items, raw)
	if len(t.calls) == before || t.problem != nil {
		return
	}
	t.upTo = append(t.upTo, len(t.items))
	t.calls[before].Refused = t.refused
	t.calls[before] = numbered(t.calls[before], t.c.numbered+len(t.calls), t.c.spent.Turns, t.c.Name)
	if t.unrun == "" {
		t.unrun = t.obstacle()
	}
	if t.unrun == "" {
		t.handed++
		t.batch.Start(t.calls[before])
	}
}

// The words that answer calls which are not run, and those behind them.
const (
	cutWords      = "Not run: the answer breaks off in this call or in one before it. Make it again."
	limitWords    = "Not run: limits.tool_calls is used up, and the run ends here."
	speakingWords = "Not run: this answer was to be words alone."
)

// obstacle is why the last call, and those behind it, are not run.
func (t *intake) obstacle() string {
	switch {
	case t.speaking:
		return speakingWords
	case t.cut:
		return cutWords
	case !t.c.mayCall(func(limit int) bool { return t.c.counted.call(t.made(), limit) }):
		return limitWords
	}
	return ""
}

// broken is told that the answer will not come to its end, perhaps more than
// once. It is not kept while no call has started: the next attempt is taken
// from its first item on.
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
	calls := t.calls[:started]
	t.items, t.answer = t.items[:t.upTo[started-1]], answer{}
	for _, item := range t.items {
		_ = t.add(item) // an item that cannot be read keeps calls behind it from starting
	}
	t.calls, t.handed, t.kept = calls, started, true
	return true
}

// settle counts what was taken.
func (t *intake) settle() {
	numbered := len(t.calls)
	if t.speaking {
		numbered = 0
	}
	t.c.count(numbered, t.handed, t.hosted)
	t.c.counted.settle(t.c.spent.Calls)
}

// made is how many calls count, with those of the answer so far.
func (t *intake) made() int { return t.c.spent.Calls + t.hosted + t.handed }

// drop ends an answer that is of no use any more.
func (t *intake) drop() {
	t.batch.Discard()
	t.abort()
	t.batch.Wait()
}

// outputs waits for the calls and gives what answers the items, in their order,
// and the results of those that were run.
func (t *intake) outputs() (items []json.RawMessage, results []tools.Result, err error) {
	defer t.abort()
	results = t.batch.Wait()
	results = append(results, t.c.inTurn(t.ctx, t.calls[len(results):t.handed], false)...) // those that were written
	items, err = outputsOf(t.calls, t.c.definitions, func(n int, _ tools.Call) tools.Result {
		if n < len(results) {
			return results[n]
		}
		return tools.Refuse(t.unrun)
	})
	return append(items, t.denials...), results, err
}

// named is an item as the conversation and its record have it: calls of tools that run here have
// ids of their own. What the API pairs by itself stays as it is.
func (t *intake) named(raw json.RawMessage) (json.RawMessage, error) {
	var item outputItem
	_ = json.Unmarshal(raw, &item) // whoever reads on tells what is wrong
	if _, ours := item.call(); !ours {
		return raw, nil
	}
	own, err := t.ids.Own(raw, t.c.spent.Turns, len(t.calls)+1)
	if err != nil {
		return raw, err
	}
	if !bytes.Equal(own, raw) {
		t.cutDown = true
	}
	return own, nil
}

// bounded is an item as the conversation keeps it. A call whose input is longer
// than tools.MaxInput is not looked at, and its input goes no further: it would
// be sent with each request to come.
func (t *intake) bounded(raw json.RawMessage) (json.RawMessage, error) {
	if t.refused = ""; len(raw) <= tools.MaxInput {
		return raw, nil
	}
	var item outputItem
	if err := json.Unmarshal(raw, &item); err != nil {
		return raw, fmt.Errorf("read output item: %w", err)
	}
	call, ours := item.call()
	if !ours || len(call.Input) <= tools.MaxInput {
		return raw, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var parts map[string]any
	if err := decoder.Decode(&parts); err != nil {
		return raw, fmt.Errorf("read output item: %w", err)
	}
	short, err := model.Encode(withoutInput(parts))
	if err != nil {
		return raw, err
	}
	t.refused = fmt.Sprintf("%s: the arguments have %d bytes, more than the %d that a call may have, and were thrown away unread. "+
		"Do it in several smaller calls, or have a command make what is large.", call.Name, len(call.Input), tools.MaxInput)
	t.cutDown = true
	return short, nil
}

// withoutInput is an item of a call without what makes its input: each stays of
// its type, for the API.
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

// emptied is an object whose texts and lists that are not short are empty.
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
