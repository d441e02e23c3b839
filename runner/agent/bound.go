package agent

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/agent-ci/agent-ci/runner/model"
	"github.com/agent-ci/agent-ci/tools"
)

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
	if _, has := item["arguments"]; has {
		item["arguments"] = "{}"
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
