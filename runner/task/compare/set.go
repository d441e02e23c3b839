package compare

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/agent-ci/agent-ci/runner/task/job"
)

// RecordJob returns a job as a run records it: job, and for readers of the run its keys that differ from the
// defaults, without the empty values of list entries.
func RecordJob(j *job.Job) (recorded, nonDefault json.RawMessage, err error) {
	builtIn, err := job.LoadTemplate()
	if err != nil {
		return nil, nil, fmt.Errorf("compare job: %w", err)
	}
	_, fallback, err := encodeJob(builtIn)
	if err != nil {
		return nil, nil, err
	}
	recorded, all, err := encodeJob(j)
	if err != nil {
		return nil, nil, err
	}
	changed := changedParts(all, fallback)
	if changed == nil {
		changed = map[string]any{}
	}
	nonDefault, err = json.Marshal(changed)
	return recorded, nonDefault, err
}

// encodeJob returns a job as JSON, and as maps and slices of encoding/json.
func encodeJob(j *job.Job) (raw []byte, object any, err error) {
	if raw, err = json.Marshal(j); err == nil {
		err = json.Unmarshal(raw, &object)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("encode job: %w", err)
	}
	return raw, object, nil
}

// changedParts returns the parts of value that differ from fallback, or nil.
func changedParts(value, fallback any) any {
	object, isObject := value.(map[string]any)
	if !isObject {
		if reflect.DeepEqual(value, fallback) {
			return nil
		}
		return withoutEmpty(value)
	}
	built, _ := fallback.(map[string]any)
	changed := map[string]any{}
	for key, entry := range object {
		if part := changedParts(entry, built[key]); part != nil {
			changed[key] = part
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return changed
}

// withoutEmpty removes empty values from the entries of a list.
func withoutEmpty(value any) any {
	switch v := value.(type) {
	case []any:
		entries := make([]any, 0, len(v))
		for _, entry := range v {
			entries = append(entries, withoutEmpty(entry))
		}
		return entries
	case map[string]any:
		filled := map[string]any{}
		for key, part := range v {
			if !isEmpty(part) {
				filled[key] = withoutEmpty(part)
			}
		}
		return filled
	}
	return value
}

// isEmpty reports whether a value of encoding/json is null, zero, "" or has no entries.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return value == nil || reflect.ValueOf(value).IsZero()
}
