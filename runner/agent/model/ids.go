package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// CallIDs makes the call ids of a conversation unique. Gateways and local servers restart numbering
// in each answer or give no ids, and others refuse such a conversation. A missing or taken id is
// replaced by one made of the call's position, so equal answers get equal ids. The zero value is
// ready.
type CallIDs struct {
	taken map[string]bool
	above *CallIDs // ids that are taken too
}

// Within returns ids for one answer without adding them to c.
func (c *CallIDs) Within() CallIDs { return CallIDs{above: c} }

// Note takes the ids of the calls among items.
func (c *CallIDs) Note(items ...json.RawMessage) {
	for _, raw := range items {
		if item := identityOf(raw); item.isCall() && item.CallID != "" {
			c.take(item.CallID)
		}
	}
}

func (c *CallIDs) take(id string) {
	if c.taken == nil {
		c.taken = map[string]bool{}
	}
	c.taken[id] = true
}

func (c *CallIDs) has(id string) bool { return c != nil && (c.taken[id] || c.above.has(id)) }

// Own takes the id of a call and returns its item: as it is, or with an id of its own. turn and
// place are its position.
func (c *CallIDs) Own(call json.RawMessage, turn, place int) (json.RawMessage, error) {
	item := identityOf(call)
	id := c.unique(item.CallID, turn, place)
	c.take(id)
	if id == item.CallID {
		return call, nil
	}
	return withFields(call, map[string]any{"call_id": id})
}

func (c *CallIDs) unique(id string, turn, place int) string {
	if id != "" && !c.has(id) {
		return id
	}
	id = fmt.Sprintf("call_%d_%d", turn, place)
	for n := 2; c.has(id); n++ {
		id = fmt.Sprintf("call_%d_%d_%d", turn, place, n)
	}
	return id
}

// identity has the fields that link items.
type identity struct {
	Type   string `json:"type"`
	CallID string `json:"call_id"`
}

func identityOf(raw json.RawMessage) identity {
	var item identity
	_ = json.Unmarshal(raw, &item) // an item without a type is of no kind
	return item
}

func (i identity) isCall() bool { return strings.HasSuffix(i.Type, "_call") }

// withFields is an item with other values of some fields.
func withFields(item json.RawMessage, values map[string]any, without ...string) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(item, &fields); err != nil {
		return nil, fmt.Errorf("read item: %w", err)
	}
	for name, value := range values {
		raw, err := Encode(value)
		if err != nil {
			return nil, err
		}
		fields[name] = raw
	}
	for name := range fields {
		if slices.Contains(without, name) {
			delete(fields, name)
		}
	}
	return Encode(fields)
}
