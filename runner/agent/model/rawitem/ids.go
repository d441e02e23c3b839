package rawitem

import (
	"encoding/json"
	"fmt"
)

// CallIDs makes the call ids of a conversation unique. Gateways and local servers restart numbering
// in each answer or give no ids, and others refuse such a conversation. A missing or taken id is
// replaced by one made of the call's position, so equal answers get equal ids. The zero value is
// ready.
type CallIDs struct {
	taken  map[string]bool
	parent *CallIDs // ids that are taken too
}

// ForAnswer returns ids for one answer. New ids differ from those of c, and do not enter c.
func (c *CallIDs) ForAnswer() CallIDs { return CallIDs{parent: c} }

// NoteCalls marks the ids of the calls among items as taken.
func (c *CallIDs) NoteCalls(items ...json.RawMessage) {
	for _, raw := range items {
		if item := FieldsOf(raw); item.IsCall() {
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

func (c *CallIDs) has(id string) bool { return c != nil && (c.taken[id] || c.parent.has(id)) }

// MakeUnique returns a call's item with a unique id, and marks that id as taken. turn and place are the call's
// position, from which it makes a new id.
func (c *CallIDs) MakeUnique(call json.RawMessage, turn, place int) (json.RawMessage, error) {
	item := FieldsOf(call)
	id := c.unique(item.CallID, turn, place)
	c.take(id)
	if id == item.CallID {
		return call, nil
	}
	return WithFields(call, map[string]any{"call_id": id})
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
