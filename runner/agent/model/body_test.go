package model_test

import (
	"encoding/json"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/rawitem"
)

func TestBodyEndsWithHistory(t *testing.T) {
	plain := model.Settings{Model: "m", Instructions: "<be> & brief", Tools: []json.RawMessage{json.RawMessage(`{"type": "function"}`)}}
	scripted := plain
	scripted.ChatQuirks = []model.Quirk{"no_null"} // settings that end with another list
	named := plain
	named.Tools = []json.RawMessage{json.RawMessage(`{"type":"function","parameters":{"default":{"a":1,"input":null}}}`)}
	formed := plain
	formed.Schema = json.RawMessage(`{"anyOf":[{"type":"object"}]}`)
	for name, settings := range map[string]model.Settings{"plain": plain, "with a schema": formed, "with tools in the input": additional(), "with quirks": scripted, "with a tool that has an input": named, "empty": {}} {
		recorded := must.Get(settings.SettingsJSON())(t)
		for _, tool := range settings.Tools {
			must.Contain(t, string(recorded), string(must.Get(rawitem.Encode(tool))(t)))
		}
		var of struct{ Input []json.RawMessage }
		must.Do(t, json.Unmarshal(recorded, &of))
		bare := json.RawMessage(`{"type":"reasoning","id":"rs_1"}`)
		items := rawitem.Compact([]json.RawMessage{user("a"), json.RawMessage("{ \"text\" :\n\"<b> \u2028 \" }"), user("c")})
		for n := range len(items) + 1 {
			body := must.Get(model.BodyFor(nil, model.Request{Settings: settings, History: append([]json.RawMessage{bare}, items[:n]...)}))(t)
			var got struct{ Input []json.RawMessage }
			must.Do(t, json.Unmarshal(body, &got), name, string(body))
			must.Same(t, append(append([]json.RawMessage{}, of.Input...), items[:n]...), got.Input, name)
			fields := must.Get(rawitem.WithFields(body, map[string]any{"input": of.Input}))(t)
			must.Same(t, string(must.Get(rawitem.WithFields(recorded, map[string]any{"input": of.Input}))(t)), string(fields), name, "the settings")
			must.Same(t, string(must.Get(rawitem.Encode(json.RawMessage(body)))(t)), string(body), name, "is not compact")
		}
	}
	encoded := []byte("as it was")
	must.Same(t, encoded, must.Get(model.BodyFor(nil, model.Request{Settings: plain, Encoded: encoded}))(t))
}

func user(text string) json.RawMessage {
	return json.RawMessage(`{"type":"message","role":"user","content":[{"type":"input_text","text":"` + text + `"}]}`)
}
