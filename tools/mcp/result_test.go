package mcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/tools/toolstest"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestResults(t *testing.T) {
	t.Parallel()
	pixel := base64.StdEncoding.EncodeToString(toolstest.PNG(t, 1, 1))
	for _, test := range []struct {
		name, result, want string
		failed             bool
		images             int
	}{
		{"text", `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, "a\nb", false, 0},
		{"error", `{"content":[{"type":"text","text":"no"}],"isError":true}`, "no", true, 0},
		{"nothing", `{"content":[]}`, "The tool answered nothing.", false, 0},
		{"structured", `{"content":[],"structuredContent":{"n":1}}`, `{"n":1}`, false, 0},
		{"image", `{"content":[{"type":"image","mimeType":"image/png","data":"` + pixel + `"}]}`, "[image: 1×1, png, ", false, 1},
		{"an image that is none", `{"content":[{"type":"image","mimeType":"image/png","data":"AAAA"}]}`, "[image, image/png, 3 bytes, can't be shown: it is not a PNG, JPEG or GIF image]", false, 0},
		{"too many images", `{"content":[` + strings.Repeat(`{"type":"image","mimeType":"image/png","data":"`+pixel+`"},`, 9) + `{"type":"text","text":"end"}]}`, "can't be shown: there are more than 8]\nend", false, 8},
		{"audio", `{"content":[{"type":"audio","mimeType":"audio/wav","data":"AAAA"}]}`, "[audio, audio/wav, 3 bytes, it can't be heard here]", false, 0},
		{"link", `{"content":[{"type":"resource_link","uri":"file:///a\u202e","name":"A","mimeType":"text/x","size":5}]}`, "[resource, file:///a, text/x, 5 bytes, A]", false, 0},
		{"text of a resource", `{"content":[{"type":"resource","resource":{"uri":"x:1","mimeType":"text/plain","text":"hi"}}]}`, "[resource, x:1, text/plain, 2 bytes]\nhi", false, 0},
		{"bytes of a resource", `{"content":[{"type":"resource","resource":{"uri":"x:1","mimeType":"application/zip","blob":"AAAA"}}]}`, "[resource, x:1, application/zip, 3 bytes, it is no text]", false, 0},
		{"image of a resource", `{"content":[{"type":"resource","resource":{"uri":"x:1","mimeType":"image/png","blob":"` + pixel + `"}}]}`, "[resource x:1: 1×1, png, ", false, 1},
		{"hostile text", `{"content":[{"type":"text","text":"a\u0000b"}]}`, "a\uFFFDb", false, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := &scripted{t: t, answer: func(s *saying, r request) {
				if !s.initialized(r, oneTool) {
					s.result(r, test.result)
				}
			}}
			r := call(t, open(t, Server{Start: server.start}), "x", "{}")
			if !strings.Contains(r.Output, test.want) || r.Failed != test.failed || len(r.Images) != test.images {
				t.Errorf("got %+v", r)
			}
			if _, err := json.Marshal(r.Detail); err != nil || r.Detail["mcp_server"] != "test" {
				t.Errorf("got %+v, %v", r.Detail, err)
			}
		})
	}
}

// TestShowsStructuredContentOnce has structured content, which the model gets unless a text has the same.
func TestShowsStructuredContentOnce(t *testing.T) {
	t.Parallel()
	const evidence = `{"evidence":["a<b"],"n":1}`
	text := func(texts ...string) string {
		var all []string
		for _, text := range texts {
			raw, _ := json.Marshal(text)
			all = append(all, `{"type":"text","text":`+string(raw)+`}`)
		}
		return strings.Join(all, ",")
	}
	for _, test := range []struct {
		name, content, structured, want string
		failed                          bool
	}{
		{"a text that points to it", text("The evidence is in structured content."), evidence, "The evidence is in structured content.\n" + evidence, false},
		{"a text that is a part of it", text(`{"n":1}`), evidence, `{"n":1}` + "\n" + evidence, false},
		{"an error", text("failed"), evidence, "failed\n" + evidence, true},
		{"a resource", `{"type":"resource","resource":{"uri":"x:1","text":"hi"}}`, evidence, "[resource, x:1, 2 bytes]\nhi\n" + evidence, false},
		{"an empty resource", `{"type":"resource","resource":{"uri":"x:1","text":""}}`, evidence, "[resource, x:1, 0 bytes]\n\n" + evidence, false},
		{"an empty text", text(" "), evidence, " \n" + evidence, false},
		{"a link", `{"type":"resource_link","uri":"x:1","name":"A"}`, evidence, "[resource, x:1, A]\n" + evidence, false},
		{"alone", "", evidence, evidence, false},
		{"a list", text("two"), `[1,2]`, "two\n[1,2]", false},

		{"the same in another form", text("{ \"n\": 1.0,\n \"evidence\": [\"a\\u003cb\"] }"), evidence, "{ \"n\": 1.0,\n \"evidence\": [\"a\\u003cb\"] }", false},
		{"the same behind words", text("Here it is:", evidence), evidence, "Here it is:\n" + evidence, false},
		{"the same in two texts", text(`{"n":`, `1}`), `{"n":1}`, "{\"n\":\n1}", false},
		{"FastMCP's string", text("hello"), `{"result":"hello"}`, "hello", false},
		{"FastMCP's number", text("5"), `{"result":5}`, "5", false},
		{"FastMCP's list", text("a", "b"), `{"result":["a","b"]}`, "a\nb", false},
		{"FastMCP's objects", text(`{"a":1}`, `{"a":2}`), `{"result":[{"a":1},{"a":2}]}`, "{\"a\":1}\n{\"a\":2}", false},
		{"a file's content", text("line\n"), `{"content":"line\n"}`, "line\n", false},
		{"a list that has more", text("a"), `{"result":["a","b"]}`, "a\n{\"result\":[\"a\",\"b\"]}", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := &scripted{t: t, answer: func(s *saying, r request) {
				if !s.initialized(r, oneTool) {
					s.result(r, fmt.Sprintf(`{"content":[%s],"structuredContent":%s,"isError":%v}`, test.content, test.structured, test.failed))
				}
			}}
			r := call(t, open(t, Server{Start: server.start}), "x", "{}")
			must.Same(t, test.want, r.Output)
			must.Same(t, test.failed, r.Failed)
		})
	}
}

func TestForwardsFittedArguments(t *testing.T) {
	t.Parallel()
	got := make(chan string, 1)
	server := &scripted{t: t, answer: func(s *saying, r request) {
		if s.initialized(r, `[{"name":"x","inputSchema":{"type":"object","properties":{"n":{"type":"integer"},"o":{"type":["string","null"]},"q":{"type":"string"}},"additionalProperties":true}}]`) {
			return
		}
		var params struct{ Arguments json.RawMessage }
		json.Unmarshal(r.Params, &params)
		got <- string(params.Arguments)
		s.result(r, `{"content":[]}`)
	}}
	s := open(t, Server{Start: server.start})
	for _, test := range []struct{ input, want string }{
		{`{"n":12345678901234567890}`, `{"n":12345678901234567890}`},
		{`{"o":null,"timeout":5,"description":"d","with_escalated_permissions":true}`, `{"description":"d","o":null,"timeout":5,"with_escalated_permissions":true}`},
		{`{"n":"5"}`, `{"n":5}`},
		{`{"q":null}`, `{}`},
		{`{"n":1,"n":2}`, `{"n":2}`},
		{``, `{}`},
	} {
		if r := call(t, s, "x", test.input); r.Failed {
			t.Errorf("%s: %+v", test.input, r)
			continue
		}
		must.Same(t, test.want, <-got, test.input)
	}
}

func TestReadsServerResources(t *testing.T) {
	t.Parallel()
	s := open(t, Server{Name: "notes", Start: inProcess(t, exampleServer(newestRevision))})
	for _, test := range []struct {
		tool, arguments, want string
		failed                bool
	}{
		{"list_mcp_resources", `{}`, `{"resources":[{"server":"notes","uri":"note://one","name":"note","mime_type":"text/plain"}]}`, false},
		{"list_mcp_resources", `{"server":"notes"}`, `note://one`, false},
		{"list_mcp_resources", `{"server":"other"}`, `there are notes`, true},
		{"list_mcp_resources", `{"cursor":"x"}`, `give server too`, true},
		{"list_mcp_resource_templates", `{}`, `{"resource_templates":[{"server":"notes","uri_template":"note://{name}","name":"notes"}]}`, false},
		{"read_mcp_resource", `{"server":"notes","uri":"note://one"}`, "[resource, note://one, text/plain, 8 bytes]\nbuy milk", false},
		{"read_mcp_resource", `{"server":"notes","uri":"note://two"}`, "not found", true},
		{"read_mcp_resource", `{"server":"","uri":""}`, "must not be empty", true},
	} {
		r := call(t, s, test.tool, test.arguments)
		must.Same(t, test.failed, r.Failed, test.tool, test.arguments, r)
		must.Contain(t, r.Output, test.want)
	}
}

// TestDeclinesQuestionsInResults has results with questions, as in the newest revision: they ask for the call again.
func TestDeclinesQuestionsInResults(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, want string
		again      bool
	}{
		{"once", "you said decline", false},
		{"without end", "asks a person again and again", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := sdk.NewServer(&sdk.Implementation{Name: "asker", Version: "1"}, nil)
			server.AddTool(&sdk.Tool{Name: "ask", InputSchema: map[string]any{"type": "object"}}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				if answer, ok := r.Params.InputResponses["q"].(*sdk.ElicitResult); ok && !test.again {
					return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "you said " + answer.Action}}}, nil
				}
				return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"q": &sdk.ElicitParams{Message: "May I?"}}}, nil
			})
			s := open(t, Server{Start: inProcess(t, server)})
			r := call(t, s, "ask", "{}")
			if !strings.Contains(r.Output, test.want) || r.Failed != test.again || r.Detail["declined"] == nil {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func listOf(server string, tools ...string) List {
	l := List{Server: server}
	for _, tool := range tools {
		l.Tools = append(l.Tools, Listed{Tool: tool, Allowed: true, Schema: json.RawMessage(`{"type":"object"}`)})
	}
	return l
}

func TestNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("l", 80)
	lists := []List{
		listOf("a", "plain", "with.dot", "with/dot", long, "b__c", "taken"),
		listOf("a__b", "c"),
		listOf("größe", "x"),
	}
	names := func(lists []List) map[string]string {
		offered := must.Get(Offer(lists, []string{"mcp__a__taken"}))(t)
		names := map[string]string{}
		for _, o := range offered {
			if len(o.Spec.Name) > 64 {
				t.Errorf("%s is too long", o.Spec.Name)
			}
			names[o.Server+" "+o.Tool] = o.Spec.Name
		}
		return names
	}
	got := names(lists)
	for tool, want := range map[string]string{
		"a plain":    "mcp__a__plain",
		"a with.dot": "mcp__a__with_dot_",
		"a with/dot": "mcp__a__with_dot_",
		"a " + long:  "mcp__a__" + strings.Repeat("l", 43) + "_",
		"a b__c":     "mcp__a__b__c_",
		"a__b c":     "mcp__a__b__c_",
		"a taken":    "mcp__a__taken_",
		"größe x":    "mcp__gr__e__x",
	} {
		hashed := strings.HasSuffix(want, "_")
		if name := got[tool]; hashed && (!strings.HasPrefix(name, want) || len(name) != len(want)+hashLength) || !hashed && name != want {
			t.Errorf("%s is %s, want %s", tool, name, want)
		}
	}
	other := []List{lists[2], lists[1], listOf("a", "taken", "b__c", long, "with/dot", "with.dot", "plain")}
	must.Same(t, got, names(other))
	crafted := strings.TrimPrefix(got["a with.dot"], "mcp__a__")
	seen := map[string]bool{}
	for _, name := range names([]List{listOf("a", "with.dot", "with/dot", crafted)}) {
		if seen[name] {
			t.Errorf("%s is there twice", name)
		}
		seen[name] = true
	}
}

func TestOfferRefusesInvalidSchema(t *testing.T) {
	t.Parallel()
	l := List{Server: "s", Tools: []Listed{{Tool: "t", Allowed: true, Schema: json.RawMessage(`{"type":"null"}`)}}}
	_, err := Offer([]List{l}, nil)
	wantError(t, err, ReasonProtocol, `has a tool "t" that cannot be offered`)
}

func TestListSurvivesJSON(t *testing.T) {
	t.Parallel()
	s := open(t, Server{Start: inProcess(t, exampleServer(newestRevision)), Tools: []string{"weather"}})
	raw := must.Get(json.MarshalIndent(s.List(), "", "  "))(t)
	var kept List
	must.Do(t, json.Unmarshal(raw, &kept))
	before := must.Get(Offer([]List{s.List()}, nil))(t)
	must.Same(t, before, must.Get(Offer([]List{kept}, nil))(t))
	must.Same(t, "", kept.Changed(s.List()), "it changed")
	other := s.List()
	other.Tools = []Listed{{Tool: "weather", Allowed: true, SHA256: "other"}, {Tool: "new", Allowed: true}}
	must.Same(t, "weather takes other arguments, new is new", kept.Changed(other))
	must.Contain(t, other.Changed(kept), "new is not there any more")
}
