package agent_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent/model/modeltest"
	"github.com/agent-ci/agent-ci/tools"
)

// A run that was killed goes on with the state that it had.
func TestRecordFoldsToItsConversation(t *testing.T) {
	t.Parallel()
	for name, session := range map[string]string{
		"calls, and some that the API ran": `version: 1
turns:
  - output: [{call: read_file, arguments: {n: 1}}, {call: broken}, {item: {type: web_search_call, id: ws_1, status: completed, action: {type: search, query: x}}}]
  - output: [{item: {type: web_search_call, id: ws_2, status: completed, action: {type: search, query: x}}}, {say: Done.}]
  - output: [{item: {type: web_search_call, id: ws_3, status: completed, action: {type: search, query: x}}}, {say: "{}"}]
`,
		"a conversation that was made shorter": long(8, "  - output: [{say: I read nine files.}]\n    usage: {input: 9500}\n"+done+"  - output: [{say: '{}'}]\n"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, _ := talk(t, session, modeltest.Options{})
			f.Window, f.Tools = 10_000, f.box.dispatcher(f.Conversation)
			f.box.answers["read_file"] = tools.Result{Output: strings.Repeat("x", 2000)}
			f.mustSay(t, "Done.")
			check := func(at string) {
				t.Helper()
				must.Same(t, f.Facts(), pastOf(t, f.events(t)...).Facts(), at)
			}
			check("after the last words")
			if _, wrong, err := f.Output(t.Context(), json.RawMessage(`{"type":"object"}`), func(json.RawMessage) error { return nil }); wrong != nil || err != nil {
				t.Fatal(wrong, err)
			}
			check("after the object")
		})
	}
}
