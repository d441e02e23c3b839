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

// itemReader assembles an answer of the Responses API from its events.
//
// Endpoints send the text of an item in different places: in the item when it is done, in separate events, or in the
// response at the end. The reader holds back an item without its text, and all items after it, until the answer is
// complete. So no incomplete call runs.
type itemReader struct {
	observer      model.Observer
	items         []receivedItem // items that are done
	handedOver    int            // number of items that the observer has got
	announced     []receivedItem // items that were announced, and are not done
	textsOfEvents []*itemText
}

// receivedItem is an item with the identifiers that other events use for it.
type receivedItem struct {
	item  json.RawMessage
	id    string
	index int
}

// itemText is the text of one item in events.
type itemText struct {
	kind     string // prefix of the events' types, a key of textKinds
	id       string // the item's ID
	index    int
	part     int // index of the text in a message
	pieces   strings.Builder
	complete *exchange.LenientText // the complete text, if an event has it
	isUsed   bool                  // the text belongs to an item that is done
}

// text returns the complete text if an event had it, or else the joined pieces.
func (t *itemText) text() string {
	if t.complete != nil {
		return string(*t.complete)
	}
	return t.pieces.String()
}

// streamEvent has the fields of events that the reader uses.
type streamEvent struct {
	Type     string               `json:"type"`
	Item     json.RawMessage      `json:"item"`
	Response json.RawMessage      `json:"response"`
	Code     exchange.LenientText `json:"code"`
	Message  exchange.LenientText `json:"message"`
	Error    *exchange.Error      `json:"error"`

	ItemID    exchange.LenientText  `json:"item_id"`
	Index     int                   `json:"output_index"`
	Part      int                   `json:"content_index"`
	Delta     exchange.LenientText  `json:"delta"`
	Arguments *exchange.LenientText `json:"arguments"`
	Input     *exchange.LenientText `json:"input"`
	Text      *exchange.LenientText `json:"text"`
	Refusal   *exchange.LenientText `json:"refusal"`
	Diff      *exchange.LenientText `json:"diff"`
}

// receivedItem returns the item in an event.
func (e streamEvent) receivedItem() receivedItem {
	return receivedItem{e.Item, rawitem.FieldsOf(e.Item).ID, e.Index}
}

const refusalText = "response.refusal"

// textKinds maps prefixes of text events to the type of item with that text.
var textKinds = map[string]string{
	"response.function_call_arguments": "function_call", "response.custom_tool_call_input": "custom_tool_call",
	"response.apply_patch_call_operation_diff": "apply_patch_call", "response.output_text": "message", refusalText: "message",
}

// Event processes an event of the stream. It returns the response for the last event, and nil before.
func (r *itemReader) Event(data []byte) (*model.Response, error) {
	var event streamEvent
	if err := json.Unmarshal(data, &event); err != nil {
		return nil, exchange.Malformed("an event is not what the API describes", err, data)
	}
	if event.Error != nil {
		return nil, event.Error.Failure(0)
	}
	switch event.Type {
	case "response.output_item.added":
		r.announced = append(r.announced, event.receivedItem())
	case "response.output_item.done":
		if len(event.Item) == 0 {
			return nil, exchange.Malformed("an event has no item", nil, data)
		}
		return nil, r.addDone(event.receivedItem())
	case "response.completed", "response.incomplete", "response.failed":
		return r.Whole(event.Response)
	case "error":
		failure := exchange.Failure(0, string(event.Code), string(event.Message))
		failure.RetryAfter = cmp.Or(exchange.WaitIn(nil, data), failure.RetryAfter)
		return nil, failure
	}
	if dot := strings.LastIndex(event.Type, "."); dot >= 0 && textKinds[event.Type[:dot]] != "" {
		r.addText(event, event.Type[:dot], event.Type[dot+1:])
	}
	return nil, nil
}

// addText keeps the text in an event: a piece if change is "delta", or the complete text if it is "done". kind is the
// event's type without change.
func (r *itemReader) addText(event streamEvent, kind, change string) {
	id := string(event.ItemID)
	i := slices.IndexFunc(r.textsOfEvents, func(t *itemText) bool {
		isSameItem := t.id == id && t.index == event.Index
		return isSameItem && t.kind == kind && t.part == event.Part && !t.isUsed
	})
	if i < 0 {
		i = len(r.textsOfEvents)
		r.textsOfEvents = append(r.textsOfEvents, &itemText{kind: kind, id: id, index: event.Index, part: event.Part})
	}
	text := r.textsOfEvents[i]
	switch change {
	case "delta":
		text.pieces.WriteString(string(event.Delta))
	case "done":
		text.complete = cmp.Or(event.Arguments, event.Input, event.Text, event.Refusal, event.Diff, text.complete)
	}
}

// addDone adds an item that is done. It gives the item to the observer unless it, or an item before it, has no text
// yet.
func (r *itemReader) addDone(done receivedItem) error {
	r.announced = slices.DeleteFunc(r.announced, func(a receivedItem) bool {
		return a.index == done.index || a.id != "" && a.id == done.id
	})
	done, isComplete, err := r.withText(done, false)
	if err != nil {
		return err
	}
	r.items = append(r.items, done)
	if isComplete && r.handedOver == len(r.items)-1 {
		r.handOver()
	}
	return nil
}

// handOver gives the observer all items that it has not got yet.
func (r *itemReader) handOver() {
	for _, a := range r.items[r.handedOver:] {
		r.observer.TakeItem(a.item)
	}
	r.handedOver = len(r.items)
}

// textsOf returns the texts received for an item: those with its ID, or else those with its index. Some endpoints give
// each event another ID, others give all items the same index.
func (r *itemReader) textsOf(a receivedItem) []*itemText {
	kind := rawitem.FieldsOf(a.item).Type
	var byID, byIndex []*itemText
	for _, t := range r.textsOfEvents {
		if t.isUsed || textKinds[t.kind] != kind {
			continue
		}
		if a.id != "" && t.id == a.id {
			byID = append(byID, t)
		}
		if t.index == a.index {
			byIndex = append(byIndex, t)
		}
	}
	if len(byID) > 0 {
		return byID
	}
	if kind == "message" { // its parts may have different ids
		return byIndex
	}
	return slices.DeleteFunc(byIndex, func(t *itemText) bool { return t.id != byIndex[0].id }) // the others belong to a later item
}

// withText returns an item with its text, and marks the received texts as used. isComplete is false while its text may
// still arrive: until the answer has ended, pieces alone are not enough.
func (r *itemReader) withText(a receivedItem, ended bool) (filled receivedItem, isComplete bool, err error) {
	field := emptyField(a.item)
	texts := r.textsOf(a)
	for _, t := range texts {
		t.isUsed = field == "" || t.complete != nil || ended
	}
	if field == "" {
		return a, true, nil
	}
	if len(texts) == 0 || slices.ContainsFunc(texts, func(t *itemText) bool { return !t.isUsed }) {
		return a, false, nil
	}
	slices.SortStableFunc(texts, func(a, b *itemText) int { return a.part - b.part })
	a.item, err = fill(a.item, field, texts)
	return a, true, err
}

// emptyField returns the name of the field in which an item lacks its text. It returns "" if the item has its own text or
// never has any.
func emptyField(item json.RawMessage) string {
	var fields struct {
		Type      string                     `json:"type"`
		Arguments exchange.LenientText       `json:"arguments"`
		Input     exchange.LenientText       `json:"input"`
		Operation map[string]json.RawMessage `json:"operation"`
		Content   rawitem.Parts              `json:"content"`
	}
	if json.Unmarshal(item, &fields) != nil {
		return ""
	}
	needsDiff := exchange.TextOf(fields.Operation["type"]) != "delete_file"
	switch {
	case fields.Type == "function_call" && fields.Arguments == "":
		return "arguments"
	case fields.Type == "custom_tool_call" && fields.Input == "":
		return "input"
	case fields.Type == "apply_patch_call" && needsDiff && exchange.TextOf(fields.Operation["diff"]) == "":
		return "operation"
	case fields.Type == "message" && fields.Content.Text() == "":
		return "content"
	}
	return ""
}

// fill returns an item with its texts in field, the result of emptyField.
func fill(item json.RawMessage, field string, texts []*itemText) (json.RawMessage, error) {
	var value any = texts[0].text()
	switch field {
	case "operation":
		var fields struct{ Operation map[string]json.RawMessage }
		if err := json.Unmarshal(item, &fields); err != nil {
			return nil, err
		}
		operation := map[string]any{}
		for name, raw := range fields.Operation {
			operation[name] = raw
		}
		operation["diff"] = value
		value = operation
	case "content":
		var parts []any
		for _, t := range texts {
			if t.kind == refusalText {
				parts = append(parts, map[string]string{"type": "refusal", "refusal": t.text()})
				continue
			}
			parts = append(parts, rawitem.OutputText(t.text()))
		}
		value = parts
	}
	return rawitem.WithFields(item, map[string]any{field: value})
}

// CompletedBy reports whether the event data can be the last one of an answer.
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

// End returns the failure of a stream that ended without its last event.
func (r *itemReader) End(bool) (*model.Response, error) {
	return nil, &model.Failure{Kind: model.StreamCut, Message: "the stream ended before response.completed"}
}

// Whole returns the response made of the received items and raw, the response in the last event. Some endpoints send
// all items only there.
func (r *itemReader) Whole(raw []byte) (*model.Response, error) {
	var wire wireResponse
	if err := json.Unmarshal(raw, &wire); err != nil {
		return nil, exchange.Malformed("the response is not what the API describes", err, raw)
	}
	if failure := wire.failure(raw); failure != nil {
		failure.Usage = wire.Usage.ToModel(wire.ServiceTier)
		return nil, failure
	}
	if err := r.complete(wire.Output); err != nil {
		return nil, err
	}
	r.handOver()
	answer := &model.Response{ID: wire.ID, Status: wire.Status, Usage: wire.Usage.ToModel(wire.ServiceTier)}
	for _, a := range r.items {
		answer.Output = append(answer.Output, a.item)
	}
	return answer, nil
}

// complete adds missing texts and items to an answer that has ended. It takes them from listed, the items in the last
// event, if listed begins with items like the received ones. Otherwise it takes what earlier events announced.
func (r *itemReader) complete(listed []json.RawMessage) error {
	sameItems := r.beginsWithSameTypes(listed)
	if err := r.fillHeldBack(listed, sameItems); err != nil {
		return err
	}
	if sameItems && len(listed) > len(r.items) { // there were no events for the rest
		r.announced = nil
		for i, item := range listed[len(r.items):] {
			r.announced = append(r.announced, receivedItem{item, rawitem.FieldsOf(item).ID, len(r.items) + i})
		}
	}
	return r.addAnnounced()
}

// beginsWithSameTypes reports whether the first items of listed have the types of the received items, in that order.
func (r *itemReader) beginsWithSameTypes(listed []json.RawMessage) bool {
	if len(listed) < len(r.items) {
		return false
	}
	for i, received := range r.items {
		if rawitem.FieldsOf(listed[i]).Type != rawitem.FieldsOf(received.item).Type {
			return false
		}
	}
	return true
}

// fillHeldBack completes the items that have no text: by the item in listed if sameItems is true, or else by the
// received pieces.
func (r *itemReader) fillHeldBack(listed []json.RawMessage, sameItems bool) (err error) {
	for i := r.handedOver; i < len(r.items); i++ {
		if emptyField(r.items[i].item) == "" {
			continue
		}
		if sameItems && emptyField(listed[i]) == "" {
			r.items[i].item = listed[i]
			continue
		}
		if r.items[i], _, err = r.withText(r.items[i], true); err != nil {
			return err
		}
	}
	return nil
}

// addAnnounced adds the items that were announced but not done. It drops unfinished items of types that have no text
// events.
func (r *itemReader) addAnnounced() (err error) {
	for _, announced := range r.announced {
		if announced, _, err = r.withText(announced, true); err != nil {
			return err
		}
		if fields := rawitem.FieldsOf(announced.item); fields.Status == "in_progress" {
			if !slices.Contains(slices.Collect(maps.Values(textKinds)), fields.Type) {
				continue
			}
			if announced.item, err = rawitem.WithFields(announced.item, map[string]any{"status": "completed"}); err != nil {
				return err
			}
		}
		r.items = append(r.items, announced)
	}
	return nil
}
