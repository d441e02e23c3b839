package agent

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
	"github.com/agent-ci/agent-ci/runner/record/price"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// ModelOptions are a model's name, settings and limits.
type ModelOptions struct {
	Model           string
	Effort, Summary string // of reasoning, as in model.Settings
	// Window is the limit of a request and its answer, in tokens; 0 if unknown.
	Window int64
	// Price is nil when it is not known.
	Price *price.List
}

// UseModel sends later requests to the model m and counts their usage under its name.
func (c *Conversation) UseModel(m ModelOptions) {
	c.Settings.Model, c.Settings.Effort, c.Settings.Summary = m.Model, m.Effort, m.Summary
	c.Window = m.Window
	c.spent.Models = append(slices.Clip(c.spent.Models), transcript.ModelUse{Model: m.Model, Price: m.Price})
}

// fallBack switches to the next fallback model because of failure. It removes the history items that only the
// old model can read, and records the switch.
func (c *Conversation) fallBack(ctx context.Context, failure *model.Failure) error {
	next, from := c.Fallbacks[0], c.Settings.Model
	c.Fallbacks = c.Fallbacks[1:]
	unreadable, lost := unreadableItems(c.history[:c.loggedItems])
	c.removeItems(unreadable)
	c.compactedTokens, c.noEndpointCompaction, c.overlongInRow = 0, false, 0
	c.UseModel(next)
	_, err := c.Log.Append(transcript.TypeModelFallback, transcript.ModelFallback{
		Turn: c.spent.Turns, From: from, To: next.Model, Reason: string(failure.Kind), Message: failure.Error(), OmittedItems: unreadable, Price: next.Price,
	})
	if err == nil && lost != "" {
		err = c.Tell("Another model began this work, and can't go on. " + lost + ": look at the checkout and its changes for what is done, before you go on with the task.")
	}
	if err != nil {
		return err
	}
	if c.lastBudget() != nil { // as in Run: the last turn has no tokens for a summary
		return nil
	}
	return c.compactIfFull(ctx)
}

// readableTypes lists the item types that every model with the same tools can read. Reasoning and compactions
// are missing, because they are encrypted for their own model.
var readableTypes = map[string]bool{
	"message":       true,
	"function_call": true, "function_call_output": true, "custom_tool_call": true, "custom_tool_call_output": true,
	"local_shell_call": true, "local_shell_call_output": true, "shell_call": true, "shell_call_output": true,
	"apply_patch_call": true, "apply_patch_call_output": true, "tool_search_call": true, "tool_search_output": true, "additional_tools": true,
	"web_search_call": true, "file_search_call": true, "code_interpreter_call": true, "image_generation_call": true,
	"mcp_list_tools": true, "mcp_call": true, "mcp_approval_request": true, "mcp_approval_response": true,
}

// lostBeginningText describes the loss of a compaction that the next model cannot read.
const lostBeginningText = "The beginning of the conversation was kept in a sealed form, and is gone"

// lostItemsText tells the model that parts of the conversation were removed. %s describes the loss.
const lostItemsText = "The API can't read all of this conversation any more. %s: look at the checkout and its changes for what is done, before you go on with the task."

// unreadableItems returns the indexes of items that another model cannot read. If one is a compaction, lost
// describes the loss for the model. Otherwise lost is "": the model need not know of lost reasoning.
func unreadableItems(items []json.RawMessage) (indexes []int, lost string) {
	for i, raw := range items {
		fields := rawitem.FieldsOf(raw)
		switch {
		case fields.Type == "compaction":
			lost = lostBeginningText
		case readableTypes[fields.Type]:
			continue
		}
		indexes = append(indexes, i)
	}
	return indexes, lost
}

// selectModel switches a resumed run to the fallback model called name, if there is one. It drops the fallbacks
// before it, which have failed already.
func (c *Conversation) selectModel(name string) {
	index := slices.IndexFunc(c.Fallbacks, func(m ModelOptions) bool { return m.Model == name })
	if index < 0 {
		return
	}
	next := c.Fallbacks[index]
	c.Fallbacks = c.Fallbacks[index+1:]
	c.UseModel(next)
}

// leaveFlexTier stops using the flex service tier if the API refused the request because of it. left reports
// whether it did.
func (c *Conversation) leaveFlexTier(failure *model.Failure) (left bool) {
	if c.Settings.ServiceTier != model.FlexTier {
		return false
	}
	switch failure.Kind {
	case model.TierBusy:
		c.Settings.ServiceTier = model.DefaultTier
	case model.TierUnknown:
		c.Settings.ServiceTier = ""
	default:
		return false
	}
	c.Warn("no_flex", "The rest of the run uses the default tier and its price, not model.service_tier: flex: %s.", strings.TrimSuffix(failure.Detail(), "."))
	return true
}
