package model_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/chat"
	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
)

// team is a namespace of two tools.
func team(t *testing.T) json.RawMessage {
	t.Helper()
	raw := must.Get(rawitem.Namespace("team", "Others.", []json.RawMessage{
		json.RawMessage(`{"type":"function","name":"spawn","description":"<Starts> one.","parameters":{"type":"object"}}`), json.RawMessage(`{"type":"function","name":"list","parameters":{"type":"object"}}`),
	}))(t)
	return raw
}

const (
	grouped = `{"type":"namespace","name":"team","description":"Others.","tools":[` + apart + `]}`
	apart   = `{"type":"function","name":"spawn","description":"<Starts> one.","parameters":{"type":"object"}},{"type":"function","name":"list","parameters":{"type":"object"}}`
	head    = `{"type":"additional_tools","role":"developer","tools":[{"type":"namespace","name":"functions","description":"Tools of the runner.","tools":[{"type":"custom","name":"exec"}`
)

func TestPlacesNamespaces(t *testing.T) {
	for _, test := range []struct {
		name     string
		settings model.Settings
		want     string // the tools and the input
	}{
		{"in tools", model.Settings{}, `[{"type":"custom","name":"exec"},` + grouped + `,{"type":"web_search"}] []`},
		{"for an endpoint that knows none", model.Settings{RequestForm: model.RequestForm{FlatNamespaces: true}}, `[{"type":"custom","name":"exec"},` + apart + `,{"type":"web_search"}] []`},
		{"in the input", model.Settings{RequestForm: model.RequestForm{ToolsInInput: true}}, `[{"type":"web_search"}] [` + head + `]},` + grouped + `]}]`},
		{"in the input, for an endpoint that knows none", model.Settings{RequestForm: model.RequestForm{ToolsInInput: true, FlatNamespaces: true}}, `[{"type":"web_search"}] [` + head + `,` + apart + `]}]}]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := test.settings
			s.Tools = []json.RawMessage{json.RawMessage(`{"type":"custom","name":"exec"}`), team(t), json.RawMessage(`{"type":"web_search"}`)}
			raw := must.Get(model.BodyFor(nil, model.Request{Settings: s}))(t)
			var body struct {
				Tools json.RawMessage
				Input []json.RawMessage
			}
			must.Do(t, json.Unmarshal(raw, &body))
			items := []json.RawMessage{}
			if s.ToolsInInput {
				items = body.Input[:1]
			}
			input := must.Get(rawitem.Encode(items))(t)
			must.Same(t, test.want, string(body.Tools)+" "+string(input))
		})
	}
}

func TestChatFlattensNamespaces(t *testing.T) {
	raw := must.Get(model.BodyFor(new(chat.Client), model.Request{Settings: model.Settings{Tools: []json.RawMessage{team(t)}}}))(t)
	var body struct {
		Tools []struct {
			Type     string
			Function struct{ Name string }
		}
	}
	must.Do(t, json.Unmarshal(raw, &body))
	if len(body.Tools) != 2 || body.Tools[0].Type != "function" || body.Tools[0].Function.Name != "spawn" || body.Tools[1].Function.Name != "list" {
		t.Errorf("the tools are %+v", body.Tools)
	}
}

func TestRecognisesRefusalOfNamespaces(t *testing.T) {
	for words, refuses := range map[string]bool{
		"Invalid value: 'namespace'. Supported values are: 'function' and 'custom'.":   true,
		"Invalid value for tools[3].type":                                              true,
		"tools.3.function: Field required":                                             true,
		"Unsupported tool type":                                                        true,
		"Unsupported value: 'xhigh' is not supported with this model.":                 false,
		"Invalid schema for function 'x': tools[3].parameters is not of type 'object'": false,
		"Invalid 'input[7].call_id': string too long.":                                 false,
	} {
		f := model.Failure{Kind: model.InvalidRequest, Status: http.StatusBadRequest, Message: words}
		must.Same(t, refuses, f.RefusesNamespaces(), words)
	}
	must.Same(t, false, (&model.Failure{Kind: model.ServerError, Status: http.StatusBadGateway, Message: "namespace"}).RefusesNamespaces(), "a failure of the server is taken for a refusal")
}
