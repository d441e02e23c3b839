package callitem

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agent-ci/agent-ci/policy/plainjson"
	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
)

// removedOutput replaces an output that EmptyOutputs removed.
const removedOutput = "[The runner removed this output to make room. What the call did stands; repeat it only to look at something again.]"

// EmptyOutputs replaces outputs in items by removedOutput, oldest first, until save tokens are saved. It skips
// outputs too short to save much.
func EmptyOutputs(items []json.RawMessage, save int64) error {
	for i := 0; i < len(items) && save > 0; i++ {
		isOutput := rawitem.FieldsOf(items[i]).IsOutput() || isWrittenOutput(items[i])
		isShort := len(items[i]) < 4*len(removedOutput)
		if !isOutput || isShort {
			continue
		}
		emptied, err := withoutOutput(items[i])
		if err != nil {
			return err
		}
		save -= int64(rawitem.EstimateBytes(items[i])-len(emptied)) / rawitem.BytesInToken
		items[i] = emptied
	}
	return nil
}

// withoutOutput returns an output item with its content replaced by removedOutput. The output of a shell_call
// keeps the exit codes of its commands.
func withoutOutput(item json.RawMessage) (json.RawMessage, error) {
	switch {
	case rawitem.FieldsOf(item).Type == rawitem.SearchOutputType:
		var out searchOutput
		if err := plainjson.Unmarshal(item, &out); err != nil {
			return nil, fmt.Errorf("read output item: %w", err)
		}
		out.Tools = []json.RawMessage{}
		return rawitem.Encode(out)
	case isWrittenOutput(item):
		return rawitem.TextMessage("user", writtenResultsHead+removedOutput)
	}
	var output any = removedOutput
	var shell shellOutput
	isShell := json.Unmarshal(item, &shell) == nil && shell.Type == "shell_call_output"
	if isShell && len(shell.Output) > 0 {
		for i := range shell.Output {
			shell.Output[i].Stdout, shell.Output[i].Stderr = "", ""
		}
		shell.Output[0].Stdout = removedOutput
		output = shell.Output
	}
	return rawitem.WithFields(item, map[string]any{"output": output})
}

// DropOldest returns the items without the first ones, so that save tokens are saved. It also leaves out calls and
// outputs whose counterpart was dropped.
func DropOldest(items []json.RawMessage, save int64) []json.RawMessage {
	first := 0
	for first < len(items) && save > 0 {
		save -= int64(rawitem.EstimateBytes(items[first])) / rawitem.BytesInToken
		first++
	}
	if first == 0 {
		return items
	}
	// Do not cut between reasoning and the item it precedes, nor between a text with written calls and
	// their results.
	for first < len(items) && (rawitem.FieldsOf(items[first-1]).Type == "reasoning" || isWrittenOutput(items[first])) {
		first++
	}
	return WithoutUnpaired(items[first:])
}

// WithoutUnpaired returns the items without outputs that have no call before them, and without calls that have no
// output.
func WithoutUnpaired(items []json.RawMessage) []json.RawMessage {
	called, answered := map[string]bool{}, map[string]bool{} // by call ID
	for _, item := range items {
		switch fields := rawitem.FieldsOf(item); {
		case fields.IsCall():
			called[fields.CallID] = true
		case fields.IsOutput() && called[fields.CallID]:
			answered[fields.CallID] = true
		}
	}
	calledBefore := map[string]bool{} // by earlier items; an output before its call is unpaired
	return slices.DeleteFunc(slices.Clone(items), func(item json.RawMessage) bool {
		fields := rawitem.FieldsOf(item)
		if !fields.IsCall() && !fields.IsOutput() {
			return false
		}
		if fields.IsCall() {
			calledBefore[fields.CallID] = true
		}
		isPaired := calledBefore[fields.CallID] && answered[fields.CallID]
		return !isPaired
	})
}
