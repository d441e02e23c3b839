package agent

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/record/price"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// Speaker is a model, with what of requests and limits is its own.
type Speaker struct {
	Model           string
	Effort, Summary string // of reasoning, as in model.Settings
	Serial          bool
	// Window is how many tokens a request and its answer may have together; 0 when that
	// is not known.
	Window int64
	// Price is nil when it is not known.
	Price *price.List
}

// Use makes s the model that requests go to. The usage of what it answers is its own.
func (c *Conversation) Use(s Speaker) {
	c.Settings.Model, c.Settings.Effort, c.Settings.Summary, c.Settings.Serial = s.Model, s.Effort, s.Summary, s.Serial
	c.Window = s.Window
	c.spent.Models = append(slices.Clip(c.spent.Models), transcript.ModelUse{Model: s.Model, Price: s.Price})
}

// fallBack goes on with the next model, which is sent the conversation as far as it can
// read it. The transcript tells which items it can't.
func (c *Conversation) fallBack(ctx context.Context, failure *model.Failure) error {
	next, from := c.Fallbacks[0], c.Settings.Model
	c.Fallbacks = c.Fallbacks[1:]
	left, lost := unreadable(c.history[:c.logged])
	c.leaveOut(left)
	c.settled, c.noOwn, c.overflow = 0, false, 0
	c.Use(next)
	_, err := c.Log.Append(transcript.TypeModelFallback, transcript.ModelFallback{
		Turn: c.spent.Turns, From: from, To: next.Model, Reason: string(failure.Kind), Why: failure.Error(), LeftOut: left, Price: next.Price,
	})
	if err == nil && lost != "" {
		err = c.Tell("Another model began this work, and can't go on. " + lost + ": look at the checkout and its changes for what is done, before you go on with the task.")
	}
	if err != nil || c.lastBudget() != nil {
		return err
	}
	return c.fit(ctx)
}

// readable are the kinds of items that any model reads that is offered the same tools.
// Reasoning and compactions are encrypted for the model that wrote them.
var readable = map[string]bool{
	"message":       true,
	"function_call": true, "function_call_output": true, "custom_tool_call": true, "custom_tool_call_output": true,
	"local_shell_call": true, "local_shell_call_output": true, "shell_call": true, "shell_call_output": true,
	"apply_patch_call": true, "apply_patch_call_output": true, "tool_search_call": true, "tool_search_output": true, "additional_tools": true,
	"web_search_call": true, "file_search_call": true, "code_interpreter_call": true, "image_generation_call": true,
	"mcp_list_tools": true, "mcp_call": true, "mcp_approval_request": true, "mcp_approval_response": true,
}

// lostBeginning tells another model of a compaction that it can't read.
const lostBeginning = "The beginning of the conversation was kept in a sealed form, and is gone"

// lostWords tell a model what of the conversation it can't be shown any more.
const lostWords = "The API can't read all of this conversation any more. %s: look at the checkout and its changes for what is done, before you go on with the task."

// unreadable returns the places of the items that the next model can't read, and in words what was
// lost with them.
func unreadable(items []json.RawMessage) (places []int, lost string) {
	for i, raw := range items {
		kind := kindOf(raw)
		switch {
		case kind.Type == "compaction":
			lost = lostBeginning
		case readable[kind.Type]:
			continue
		}
		places = append(places, i)
	}
	return places, lost
}

// goOnWith makes the model that a run had come to the one of the conversation.
func (c *Conversation) goOnWith(name string) {
	at := slices.IndexFunc(c.Fallbacks, func(s Speaker) bool { return s.Model == name })
	if at < 0 {
		return
	}
	next := c.Fallbacks[at]
	c.Fallbacks = c.Fallbacks[at+1:]
	c.Use(next)
}

// withoutTier has requests go on without the tier that the API refused, where that is the
// one which may be taken away at any time.
func (c *Conversation) withoutTier(failure *model.Failure) bool {
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
	c.warn("no_flex", "The rest of the run uses the default tier and its price, not model.service_tier: flex: %s.", strings.TrimSuffix(failure.Detail(), "."))
	return true
}
