package responses

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/internal/exchange"
	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
)

// itemReader reads an answer of the Responses API.
//
// Endpoints differ in where the text of an item is: in the item when it is done, in events for its
// text, or in the response at the end. An item without its text is held back, with those behind
// it, until the answer is whole, so that no call runs of which a part is missing.
type itemReader struct {
	observe model.Observer
	items   []arrived // that are done
	given   int       // of items, those that the observer has
	begun   []arrived // that were announced, and are not done
	texts   []*itemText
	bytes   int // that came
}

// arrived is an item with the identifiers used in other events.
type arrived struct {
	item  json.RawMessage
	id    string
	index int
}

// itemText is the text of one item in events.
type itemText struct {
	kind   string // of the events
	id     string // of the item
	index  int
	part   int // of a message
	deltas strings.Builder
	whole  *exchange.Text // by the event that ends it
	used   bool
}

// text returns the whole text: from its last event, else from its pieces.
func (t *itemText) text() string {
	if t.whole != nil {
		return string(*t.whole)
	}
	return t.deltas.String()
}

// streamEvent has the fields of the events in use. Other fields and unknown kinds of events are
// ignored.
type streamEvent struct {
	Type     string          `json:"type"`
	Item     json.RawMessage `json:"item"`
	Response json.RawMessage `json:"response"`
	Code     exchange.Text   `json:"code"`
	Message  exchange.Text   `json:"message"`
	Error    *exchange.Error `json:"error"`

	ItemID    exchange.Text  `json:"item_id"`
	Index     int            `json:"output_index"`
	Part      int            `json:"content_index"`
	Delta     exchange.Text  `json:"delta"`
	Arguments *exchange.Text `json:"arguments"`
	Input     *exchange.Text `json:"input"`
	Text      *exchange.Text `json:"text"`
	Refusal   *exchange.Text `json:"refusal"`
	Diff      *exchange.Text `json:"diff"`
}

// arrived is the item of an event.
func (e streamEvent) arrived() arrived { return arrived{e.Item, rawitem.FieldsOf(e.Item).ID, e.Index} }

const refusalText = "response.refusal"

// textKinds maps prefixes of text events to the type of item with that text.
var textKinds = map[string]string{
	"response.function_call_arguments": "function_call", "response.custom_tool_call_input": "custom_tool_call",
	"response.apply_patch_call_operation_diff": "apply_patch_call", "response.output_text": "message", refusalText: "message",
}

// Event takes an event of the stream. It returns the response with the last event, and nil before.
func (r *itemReader) Event(data []byte) (*model.Response, error) {
	if r.bytes += len(data); r.bytes > exchange.WholeLimit {
		return nil, exchange.Malformed("the answer is too long", nil, data)
	}
	var event streamEvent
	if err := json.Unmarshal(data, &event); err != nil {
		return nil, exchange.Malformed("an event is not what the API describes", err, data)
	}
	if event.Error != nil {
		return nil, event.Error.Failure(0)
	}
	switch event.Type {
	case "response.output_item.added":
		r.begun = append(r.begun, event.arrived())
	case "response.output_item.done":
		if len(event.Item) == 0 {
			return nil, exchange.Malformed("an event has no item", nil, data)
		}
		return nil, r.done(event.arrived())
	case "response.completed", "response.incomplete", "response.failed":
		return r.Whole(event.Response)
	case "error":
		failure := exchange.Failure(0, string(event.Code), string(event.Message))
		failure.RetryAfter = cmp.Or(exchange.WaitIn(nil, data), failure.RetryAfter)
		return nil, failure
	}
	if at := strings.LastIndex(event.Type, "."); at >= 0 && textKinds[event.Type[:at]] != "" {
		r.textEvent(event, event.Type[:at], event.Type[at+1:])
	}
	return nil, nil
}

// textEvent takes a piece of a text, or the whole.
func (r *itemReader) textEvent(event streamEvent, kind, end string) {
	of := slices.IndexFunc(r.texts, func(t *itemText) bool {
		return !t.used && t.kind == kind && t.part == event.Part && t.id == string(event.ItemID) && t.index == event.Index
	})
	if of < 0 {
		of = len(r.texts)
		r.texts = append(r.texts, &itemText{kind: kind, id: string(event.ItemID), index: event.Index, part: event.Part})
	}
	text := r.texts[of]
	switch end {
	case "delta":
		text.deltas.WriteString(string(event.Delta))
	case "done":
		text.whole = cmp.Or(event.Arguments, event.Input, event.Text, event.Refusal, event.Diff, text.whole)
	}
}

// done takes an item.
func (r *itemReader) done(a arrived) error {
	r.begun = slices.DeleteFunc(r.begun, func(b arrived) bool { return b.index == a.index || b.id != "" && b.id == a.id })
	a, whole, err := r.filled(a, false)
	if err != nil {
		return err
	}
	r.items = append(r.items, a)
	if whole && r.given == len(r.items)-1 {
		r.give()
	}
	return nil
}

// give hands all items so far to the observer.
func (r *itemReader) give() {
	for _, a := range r.items[r.given:] {
		r.observe.Give(a.item)
	}
	r.given = len(r.items)
}

// textsOf returns the texts received for an item, by its id or else its index. Some endpoints give
// each event another id, some give all items one index.
func (r *itemReader) textsOf(a arrived) []*itemText {
	kind := rawitem.FieldsOf(a.item).Type
	pick := func(of func(*itemText) bool) (texts []*itemText) {
		for _, t := range r.texts {
			if !t.used && textKinds[t.kind] == kind && of(t) {
				texts = append(texts, t)
			}
		}
		return texts
	}
	if texts := pick(func(t *itemText) bool { return a.id != "" && t.id == a.id }); len(texts) > 0 {
		return texts
	}
	texts := pick(func(t *itemText) bool { return t.index == a.index })
	return slices.DeleteFunc(texts, func(t *itemText) bool { return t.id != texts[0].id && kind != "message" })
}

// filled returns an item with its text, and whether the text is complete. Pieces alone are no
// complete text until the answer has ended.
func (r *itemReader) filled(a arrived, ended bool) (_ arrived, whole bool, err error) {
	fill := lackingText(a.item)
	texts := r.textsOf(a)
	for _, t := range texts {
		t.used = fill == nil || t.whole != nil || ended
	}
	if fill == nil || len(texts) == 0 || slices.ContainsFunc(texts, func(t *itemText) bool { return !t.used }) {
		return a, fill == nil, nil
	}
	slices.SortStableFunc(texts, func(a, b *itemText) int { return a.part - b.part })
	a.item, err = fill(a.item, texts)
	return a, true, err
}

// fill puts texts into an item without them.
type fill func(item json.RawMessage, texts []*itemText) (json.RawMessage, error)

// lackingText returns how to fill an item without text; nil if it has its own or never has any.
func lackingText(item json.RawMessage) fill {
	var has struct {
		Type      string                     `json:"type"`
		Arguments exchange.Text              `json:"arguments"`
		Input     exchange.Text              `json:"input"`
		Operation map[string]json.RawMessage `json:"operation"`
		Content   rawitem.Parts              `json:"content"`
	}
	if json.Unmarshal(item, &has) != nil {
		return nil
	}
	switch has.Type {
	case "function_call":
		if has.Arguments == "" {
			return inField("arguments")
		}
	case "custom_tool_call":
		if has.Input == "" {
			return inField("input")
		}
	case "apply_patch_call":
		if exchange.TextOf(has.Operation["type"]) != "delete_file" && exchange.TextOf(has.Operation["diff"]) == "" {
			return func(item json.RawMessage, texts []*itemText) (json.RawMessage, error) {
				operation := map[string]any{}
				for name, value := range has.Operation {
					operation[name] = value
				}
				operation["diff"] = texts[0].text()
				return rawitem.With(item, map[string]any{"operation": operation})
			}
		}
	case "message":
		if has.Content.Text() == "" {
			return withParts
		}
	}
	return nil
}

func inField(name string) fill {
	return func(item json.RawMessage, texts []*itemText) (json.RawMessage, error) {
		return rawitem.With(item, map[string]any{name: texts[0].text()})
	}
}

func withParts(item json.RawMessage, texts []*itemText) (json.RawMessage, error) {
	var parts []any
	for _, t := range texts {
		if t.kind == refusalText {
			parts = append(parts, map[string]string{"type": "refusal", "refusal": t.text()})
			continue
		}
		parts = append(parts, rawitem.OutputText(t.text()))
	}
	return rawitem.With(item, map[string]any{"content": parts})
}

// CompletedBy says whether an event can be the last one.
func (r *itemReader) CompletedBy(data []byte) bool {
	var event streamEvent
	if json.Unmarshal(data, &event) != nil {
		return false
	}
	switch event.Type {
	case "response.completed", "response.incomplete", "response.failed", "error":
		return true
	}
	return event.Error != nil
}

// End is the failure of a stream without its last event.
func (r *itemReader) End(bool) (*model.Response, error) {
	return nil, &model.Failure{Kind: model.StreamCut, Message: "the stream ended before response.completed"}
}

// Whole joins the received items with the last event. Endpoints without item events give all items
// in the last event.
func (r *itemReader) Whole(raw []byte) (*model.Response, error) {
	var wire wireResponse
	if err := json.Unmarshal(raw, &wire); err != nil {
		return nil, exchange.Malformed("the response is not what the API describes", err, raw)
	}
	if failure := wire.failure(raw); failure != nil {
		failure.Usage = wire.Usage.At(wire.ServiceTier)
		return nil, failure
	}
	if err := r.complete(wire.Output); err != nil {
		return nil, err
	}
	r.give()
	answer := &model.Response{ID: wire.ID, Status: wire.Status, Usage: wire.Usage.At(wire.ServiceTier)}
	for _, a := range r.items {
		answer.Output = append(answer.Output, a.item)
	}
	return answer, nil
}

// complete completes the items of an ended answer. listed are the items of its last event. They
// count as the same items if the types match.
func (r *itemReader) complete(listed []json.RawMessage) (err error) {
	alike := len(listed) >= len(r.items)
	for i := 0; alike && i < len(r.items); i++ {
		alike = rawitem.FieldsOf(listed[i]).Type == rawitem.FieldsOf(r.items[i].item).Type
	}
	for i := r.given; i < len(r.items); i++ {
		switch {
		case lackingText(r.items[i].item) == nil:
		case alike && lackingText(listed[i]) == nil:
			r.items[i].item = listed[i]
		default:
			if r.items[i], _, err = r.filled(r.items[i], true); err != nil {
				return err
			}
		}
	}
	if alike && len(listed) > len(r.items) { // those that did not come by themselves
		r.begun = nil
		for i, item := range listed[len(r.items):] {
			r.begun = append(r.begun, arrived{item, rawitem.FieldsOf(item).ID, len(r.items) + i})
		}
	}
	for _, b := range r.begun { // and those that were never done
		if b, _, err = r.filled(b, true); err != nil {
			return err
		}
		if rawitem.FieldsOf(b.item).Status == "in_progress" {
			if !slices.Contains(slices.Collect(maps.Values(textKinds)), rawitem.FieldsOf(b.item).Type) {
				continue
			}
			if b.item, err = rawitem.With(b.item, map[string]any{"status": "completed"}); err != nil {
				return err
			}
		}
		r.items = append(r.items, b)
	}
	return nil
}
