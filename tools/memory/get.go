package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/tools"
)

// GetName is the name of the tool that returns lessons.
const GetName = "get_memory"

var getSpec = tools.Spec{
	Name: GetName,
	Description: "Tells lessons of earlier runs on this repository, with their evidence: those that fit the task, or the one with an id of the index. " +
		"They stay the same for the run.",
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"memory_id":{"type":"string","description":"Id of one lesson. Left out: those that fit the task."}` +
		`},"required":[],"additionalProperties":false}`),
}

// Get returns the tool get_memory. It returns one lesson by its ID, or those chosen for the task.
func (m Memory) Get() tools.Tool {
	type arguments struct {
		ID string `json:"memory_id"`
	}
	return tools.Tool{Spec: getSpec, Run: tools.Decoded(func(_ context.Context, _ tools.Call, a arguments) (tools.Result, error) {
		ids := m.Chosen
		if id := strings.TrimSpace(a.ID); id != "" {
			ids = []string{id}
		}
		switch {
		case len(m.Lessons) == 0:
			return tools.Refuse("get_memory: this run has no lessons. Go on without."), nil
		case len(ids) == 0:
			return tools.Result{Output: fmt.Sprintf("None of the %d lessons has a word of the task. The index in the first message names them; ask for one by its memory_id.", len(m.Lessons))}, nil
		case len(ids) == 1 && m.find(ids[0]) == nil:
			return tools.Refuse(fmt.Sprintf("get_memory: there is no lesson %q; the ids stand in the index in the first message. Without memory_id you get those that fit the task.", clip.Bytes(ids[0], indexWidth))), nil
		}
		return tools.Result{Output: m.describe(ids), Detail: map[string]any{"lessons": ids}}, nil
	})}
}
