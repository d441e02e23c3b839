package compare

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/agent-ci/agent-ci/runner/task/job"
)

// nonDefaultKeys returns the keys of a job that differ from the defaults, as a JSON object for readers of a
// run. It omits empty values from list entries.
func nonDefaultKeys(j *job.Job) (json.RawMessage, error) {
	builtIn, err := job.LoadTemplate()
	if err != nil {
		return nil, fmt.Errorf("compare job: %w", err)
	}
	fallback, err := jobAsObject(builtIn)
	if err != nil {
		return nil, err
	}
	all, err := jobAsObject(j)
	if err != nil {
		return nil, err
	}
	set, _ := changedParts(all, fallback).(map[string]any)
	if set == nil {
		set = map[string]any{}
	}
	return json.Marshal(set)
}

// RecordJob returns a job as a run records it: job, and its keys that differ from the defaults.
func RecordJob(j *job.Job) (job, nonDefault json.RawMessage, err error) {
	if job, err = json.Marshal(j); err != nil {
		return nil, nil, fmt.Errorf("encode job: %w", err)
	}
	nonDefault, err = nonDefaultKeys(j)
	return job, nonDefault, err
}

// jobAsObject converts a job to the maps and slices of encoding/json.
func jobAsObject(j *job.Job) (map[string]any, error) {
	raw, err := json.Marshal(j)
	if err != nil {
		return nil, fmt.Errorf("encode job: %w", err)
	}
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, fmt.Errorf("encode job: %w", err)
	}
	return object, nil
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
