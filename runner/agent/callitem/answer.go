package callitem

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/plainjson"
	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/dialect"
)

// OutputItem holds the fields of an answer's item that the agent loop reads.
type OutputItem struct {
	transcript.ResponseItem
	ID        string          `json:"id"`
	Status    string          `json:"status"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Namespace string          `json:"namespace"` // only in a function_call
	Arguments json.RawMessage `json:"arguments"` // a string, or an object in a tool_search_call
	Input     string          `json:"input"`
	Operation json.RawMessage `json:"operation"`
	Action    json.RawMessage `json:"action"`
	Phase     string          `json:"phase"` // in a message: commentary, final_answer or empty
	Content   []struct {
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	} `json:"content"`
}

// Call returns the call in the item. isLocal is false if the item is no call, or if the API runs the call itself.
func (i OutputItem) Call() (call tools.Call, isLocal bool) {
	switch i.Type {
	case "function_call":
		return tools.Call{ID: i.CallID, Name: tools.QualifiedName(i.Namespace, i.Name), Input: i.arguments()}, true
	case "custom_tool_call":
		return tools.Call{ID: i.CallID, Name: i.Name, Input: i.Input, Form: tools.Freeform}, true
	case "apply_patch_call":
		return tools.Call{ID: i.CallID, Name: dialect.ApplyPatch, Input: string(i.Operation), Form: tools.Operation}, true
	case "shell_call":
		return tools.Call{ID: i.CallID, Name: dialect.Shell, Input: string(i.Action), Form: tools.ShellAction}, !i.IsHosted()
	case "local_shell_call":
		return tools.Call{ID: i.CallID, Name: dialect.Shell, Input: string(i.Action), Form: tools.LocalShellAction}, true
	case "tool_search_call":
		return tools.Call{ID: i.CallID, Name: dialect.ToolSearch, Input: i.arguments(), Form: tools.Search}, !i.IsHosted()
	}
	return tools.Call{}, false
}

// arguments returns a call's arguments as JSON text, whether the API sent them as a string or as an object.
func (i OutputItem) arguments() (text string) {
	if json.Unmarshal(i.Arguments, &text) == nil {
		return text
	}
	return string(i.Arguments)
}

// Answer holds the calls and texts of a model's answer. Items of unknown types are ignored.
type Answer struct {
	Calls       []tools.Call
	LastCallCut bool              // the last call is incomplete
	Hosted      int               // calls that the API ran itself
	Denials     []json.RawMessage // refusals of the approvals that the API asks a person for
	Words       []string          // the texts of all messages, including remarks
	messages    []string          // messages other than commentary
	remarks     []string          // messages that the model marked as commentary
	refusals    []string          // texts in which the model refuses the task
}

// Add adds the next item to the answer. It returns an error for an item that cannot be read.
func (a *Answer) Add(raw json.RawMessage) error {
	var item OutputItem
	if err := plainjson.Unmarshal(raw, &item); err != nil {
		return fmt.Errorf("read output item: %w", err)
	}
	call, isLocal := item.Call()
	switch {
	case isLocal:
		a.Calls, a.LastCallCut = append(a.Calls, call), item.Status == "incomplete"
	case item.IsHosted():
		a.Hosted++
	case item.Type == "mcp_approval_request":
		denial, err := rawitem.Encode(approvalResponse{"mcp_approval_response", item.ID, false, "The approval policy is never: nobody is there to approve it."})
		if err != nil {
			return err
		}
		a.Denials = append(a.Denials, denial)
	case item.Type == "message":
		a.addMessage(item)
	}
	return nil
}

// addMessage adds the texts of a message.
func (a *Answer) addMessage(item OutputItem) {
	text, refusal := "", ""
	for _, part := range item.Content {
		text, refusal = text+part.Text, refusal+part.Refusal
	}
	a.Words, a.refusals = append(a.Words, text), append(a.refusals, refusal)
	if item.Phase == "commentary" {
		a.remarks = append(a.remarks, strings.TrimSpace(text))
		return
	}
	a.messages = append(a.messages, strings.TrimSpace(text))
}

// Text returns the model's messages without its commentary, or the commentary if there is nothing else.
func (a *Answer) Text() string {
	return cmp.Or(joinTexts(a.messages), joinTexts(a.remarks))
}

// LastWords returns Text, or "" if the model wrote calls into the text.
func (a *Answer) LastWords() string {
	if slices.ContainsFunc(a.Calls, func(call tools.Call) bool { return call.Form == tools.Written }) {
		return ""
	}
	return a.Text()
}

// RemarksOnly reports whether all messages are commentary, so that the model is probably not done.
func (a *Answer) RemarksOnly() bool { return joinTexts(a.messages) == "" && joinTexts(a.remarks) != "" }

// Refusal returns the text in which the model refuses the task, or "".
func (a *Answer) Refusal() string { return joinTexts(a.refusals) }

func joinTexts(texts []string) string { return strings.TrimSpace(strings.Join(texts, "\n\n")) }

// NeedsReply reports whether the model waits for outputs of calls or for an approval.
func (a *Answer) NeedsReply() bool { return len(a.Calls)+len(a.Denials) > 0 }
