package model

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
)

// Bodies encodes the requests of one conversation. Each request repeats the items of the previous one and adds a few, so
// Bodies encodes only the new items. The zero value is ready for use.
type Bodies struct {
	settings      Settings
	items         []json.RawMessage // the items in encodedPrefix
	encodedPrefix []byte            // the JSON of the last request up to the end of its items
}

// endOfItems closes a body after its last item. The input is its last field.
const endOfItems = "]}"

// Encode returns the JSON of r in the form that m sends. It returns the same bytes as BodyFor.
func (b *Bodies) Encode(m Responder, r Request) ([]byte, error) {
	switch m := m.(type) {
	case *Retrying:
		return b.Encode(m.Next, r)
	case bodyTranslator:
		return BodyFor(m, r)
	}
	if r.Encoded != nil || len(r.History) == 0 {
		return BodyFor(m, r)
	}
	if err := b.continueOrRestart(r); err != nil {
		return nil, err
	}
	for _, item := range r.History[len(b.items):] {
		if err := b.add(item); err != nil {
			*b = Bodies{}
			return nil, err
		}
	}
	return slices.Concat(b.encodedPrefix, []byte(endOfItems)), nil // a client may still be reading the last one
}

// continueOrRestart keeps the encoded items if r begins with them and has the same settings. Otherwise it drops them
// and encodes the settings of r.
func (b *Bodies) continueOrRestart(r Request) error {
	if b.encodedPrefix != nil && b.isContinuedBy(r) {
		return nil
	}
	empty, err := r.Settings.body()
	if err != nil {
		return err
	}
	if empty.Input == nil {
		empty.Input = []json.RawMessage{}
	}
	encoded, err := rawitem.Encode(empty)
	if err != nil {
		return err
	}
	*b = Bodies{settings: r.Settings, encodedPrefix: bytes.TrimSuffix(encoded, []byte(endOfItems))}
	return nil
}

// isContinuedBy reports whether r has the same settings and begins with the encoded items.
func (b *Bodies) isContinuedBy(r Request) bool {
	if len(r.History) < len(b.items) || !reflect.DeepEqual(r.Settings, b.settings) {
		return false
	}
	return slices.EqualFunc(b.items, r.History[:len(b.items)], func(encoded, item json.RawMessage) bool { return bytes.Equal(encoded, item) })
}

// add appends an item. It does not encode reasoning without content (rawitem.IsBareReasoning), which is never sent.
func (b *Bodies) add(item json.RawMessage) error {
	if rawitem.IsBareReasoning(item) {
		b.items = append(b.items, item)
		return nil
	}
	raw, err := rawitem.Encode(item)
	if err != nil {
		return err
	}
	if !bytes.HasSuffix(b.encodedPrefix, []byte("[")) {
		b.encodedPrefix = append(b.encodedPrefix, ',')
	}
	b.encodedPrefix, b.items = append(b.encodedPrefix, raw...), append(b.items, item)
	return nil
}
