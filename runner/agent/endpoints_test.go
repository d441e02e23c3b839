package agent_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent/callitem"
	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/chat"
	"github.com/agent-ci/agent-ci/runner/agent/model/chat/chattest"
	"github.com/agent-ci/agent-ci/tools"
)

// TestEndpointQuirks has a conversation with each endpoint of docs/reference/model.md, with its settings and
// without.
func TestEndpointQuirks(t *testing.T) {
	t.Parallel()
	for _, e := range chattest.Endpoints(t, "../..") {
		if e.Tools != "function" { // an edit format is of the run, not of the conversation
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			found, refused := meet(t, e, e.Quirks)
			must.Same(t, e.Quirks, found, "model.chat (-given +at the end)")
			must.None(t, refused, "with", e.Quirks, "refusals")
			if slices.Contains(e.Quirks, chat.TextCalls) { // which no conversation finds out
				return
			}
			found, _ = meet(t, e, nil)
			must.Same(t, e.Quirks, found, "model.chat (-documented +found out)")
		})
	}
}

// meet has a conversation with an endpoint to its end, and returns its quirks then and the endpoint's refusals.
func meet(t *testing.T, e chattest.Endpoint, quirks []model.Quirk) (found []model.Quirk, refused []string) {
	t.Helper()
	s := e.Serve(t)
	f := converse(t, "version: 1\nturns: [{output: []}]\n")
	f.ask(t, "chat", model.Endpoint{BaseURL: s.URL, IdleLimit: time.Hour})
	parameters := json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}},"additionalProperties":false}`)
	f.Tools = &tools.Dispatcher{Outputs: new(tools.Outputs), Observer: f.Conversation, Registry: tools.New(f.box.tool(tools.Spec{Name: "shell_command", Parameters: parameters}))}
	f.Tools.Offered = f.Tools.Registry.Names()
	f.Settings.Tools = must.Get(callitem.Definitions(f.Tools.Registry.Specs(f.Tools.Offered)))(t)
	f.Settings.Effort, f.Settings.MaxOutputTokens, f.Settings.ChatQuirks = "medium", 1000, quirks
	f.Limits.Calls = 5 // the model is told when few are left: a message between outputs
	f.mustTell(t, "The task.")
	f.mustSay(t, "All is done.")
	schema := json.RawMessage(`{"type":"object","required":["ok"],"additionalProperties":false,"properties":{"ok":{"const":true}}}`)
	value, mismatch, err := f.Output(t.Context(), schema, func(json.RawMessage) error { return nil })
	must.Do(t, err)
	must.Same(t, `{"ok": true}`, string(value), mismatch)
	must.Same(t, 4, len(f.box.asked), "calls")
	slices.Sort(f.Settings.ChatQuirks)
	return append([]model.Quirk{}, f.Settings.ChatQuirks...), s.Refused()
}
