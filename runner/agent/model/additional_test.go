package model_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent/model"
)

func additional() model.Settings {
	return model.Settings{
		Model: "m", Instructions: "<be> brief", RequestForm: model.RequestForm{ToolsInInput: true, Context: "all_turns"}, SerialCalls: true, Effort: "low",
		Tools: []json.RawMessage{
			json.RawMessage(`{"type":"custom","name":"exec"}`), json.RawMessage(`{"type":"web_search"}`), json.RawMessage(`{"type":"function","name":"wait"}`),
		},
	}
}

func TestPutsToolsAndInstructionsIntoInput(t *testing.T) {
	got := must.Get(model.BodyFor(nil, model.Request{Settings: additional(), History: []json.RawMessage{user("a")}}))(t)
	want := `{"model":"m","tools":[{"type":"web_search"}],"tool_choice":"auto","parallel_tool_calls":false,"reasoning":{"effort":"low","context":"all_turns"},` +
		`"include":["reasoning.encrypted_content"],"store":false,"stream":true,"input":[` +
		`{"type":"additional_tools","role":"developer","tools":[{"type":"namespace","name":"functions","description":"Tools of the runner.",` +
		`"tools":[{"type":"custom","name":"exec"},{"type":"function","name":"wait"}]}]},` +
		`{"type":"message","role":"developer","content":[{"type":"input_text","text":"<be> brief"}]},` + string(user("a")) + `]}`
	must.Same(t, want, string(got))
}

func TestRecognisesRefusalOfToolsInInput(t *testing.T) {
	for words, refuses := range map[string]bool{
		"Invalid value: 'additional_tools'. Supported values are: 'message' and 'reasoning'.": true,
		"Unknown item type in input":                                   true,
		"input[0].type: unexpected value":                              true,
		"Invalid type for 'input.0'":                                   true,
		"Unknown parameter: 'reasoning.context'.":                      true,
		"Unsupported value: 'xhigh' is not supported with this model.": false,
		"Invalid 'input[7].call_id': string too long.":                 false,
		"The model `m` does not exist.":                                false,
	} {
		f := model.Failure{Kind: model.InvalidRequest, Status: http.StatusBadRequest, Message: words}
		must.Same(t, refuses, f.RefusesToolsInInput(), words)
	}
	must.Same(t, false, (&model.Failure{Kind: model.ServerError, Status: http.StatusBadGateway, Message: "additional_tools"}).RefusesToolsInInput(), "a failure of the server is taken for a refusal")
}
