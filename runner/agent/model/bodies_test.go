package model_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent/model"
)

// unasked is a Responder of the Responses API that is never asked.
type unasked struct{}

func (unasked) Respond(context.Context, model.Request, model.Observer) (*model.Response, error) {
	return nil, nil
}

func TestBodiesEqualRequests(t *testing.T) {
	settings := model.Settings{Model: "m", Instructions: "<be> & brief", Tools: []json.RawMessage{json.RawMessage(`{"type": "function"}`)}}
	other := settings
	other.WordsOnly = true
	additional := settings
	additional.ToolsInInput = true
	items := []json.RawMessage{user("a"), json.RawMessage("{ \"text\" :\n\"<b> \u2028 \" }"), nil, user("c"), user("d")}
	asked := &model.Retrying{Next: unasked{}}

	var bodies model.Bodies
	var kept, copies [][]byte
	for _, request := range []model.Request{
		{Settings: settings},
		{Settings: settings, History: items[:1]},
		{Settings: settings, History: items[:1]},
		{Settings: settings, History: items[:3]},
		{Settings: other, History: items[:4]},
		{Settings: settings, History: items},
		{Settings: settings, History: items[1:]},
		{Settings: settings, History: items[1:2]},
		{Settings: settings, History: items},
		{Settings: additional, History: items[:2]},
		{Settings: additional, History: items},
		{Settings: settings, History: items, Encoded: []byte("as it was")},
	} {
		got := must.Get(bodies.Encode(asked, request))(t)
		want := must.Get(model.BodyFor(asked, request))(t)
		must.Same(t, string(want), string(got), len(request.History), "items")
		kept, copies = append(kept, got), append(copies, append([]byte(nil), got...))
	}
	must.Same(t, copies, kept, "a later request changed the body of an earlier one")
}

func TestBodiesContinueAfterInvalidItem(t *testing.T) {
	var bodies model.Bodies
	settings := model.Settings{Model: "m"}
	must.Fail(t, "", must.Err(bodies.Encode(unasked{}, model.Request{Settings: settings, History: []json.RawMessage{user("a"), json.RawMessage("{")}})), "an item that is no JSON was sent")
	good := model.Request{Settings: settings, History: []json.RawMessage{user("a"), user("b")}}
	got := must.Get(bodies.Encode(unasked{}, good))(t)
	want, err := good.Body()
	if diff := cmp.Diff(string(want), string(got)); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

func user(text string) json.RawMessage {
	raw, err := json.Marshal(map[string]any{"type": "message", "role": "user", "content": []any{map[string]any{"type": "input_text", "text": text}}})
	if err != nil {
		panic(err)
	}
	return raw
}
