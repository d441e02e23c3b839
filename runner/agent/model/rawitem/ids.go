package rawitem

import (
	"encoding/json"
	"fmt"
)

// CallIDs makes the call IDs of a conversation unique. Some servers send no IDs, or the same ones in
// each answer, and others refuse such a conversation. A missing or duplicate ID is replaced by one made
// of the call's position, so that equal answers get equal IDs. The zero value is ready for use.
type CallIDs struct {
	taken  map[string]bool
	parent *CallIDs // further IDs that are taken; may be nil
}

// ForAnswer returns a CallIDs for one answer. Its IDs differ from those of c, and are not added to c.
func (c *CallIDs) ForAnswer() CallIDs { return CallIDs{parent: c} }

// NoteCalls marks the IDs of the calls among items as taken.
func (c *CallIDs) NoteCalls(items ...json.RawMessage) {
	for _, raw := range items {
		if item := FieldsOf(raw); item.IsCall() {
			c.take(item.CallID)
		}
	}
}

// take marks an ID as taken.
func (c *CallIDs) take(id string) {
	if c.taken == nil {
		c.taken = map[string]bool{}
	}
	c.taken[id] = true
}

// has reports whether an ID is taken.
func (c *CallIDs) has(id string) bool { return c != nil && (c.taken[id] || c.parent.has(id)) }

// MakeUnique returns a call's item with a unique ID, and marks that ID as taken. If the call needs a new ID, it
// consists of turn and place, the call's number in its turn.
func (c *CallIDs) MakeUnique(call json.RawMessage, turn, place int) (json.RawMessage, error) {
	item := FieldsOf(call)
	id := c.unique(item.CallID, turn, place)
	c.take(id)
	if id == item.CallID {
		return call, nil
	}
	return WithFields(call, map[string]any{"call_id": id})
}

// unique returns id if it is set and not taken, and a new ID otherwise.
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
