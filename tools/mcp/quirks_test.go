package mcp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/tools/toolstest"
)

// quirky is a server of 2025-11-25 that answers with the results of a function, or refuses with "error". over is
// how it is reached, and id the form in which it writes the ids of requests.
func quirky(t *testing.T, over, id string, page func(r request) string) Server {
	t.Helper()
	message := func(r request) string {
		result := ""
		switch {
		case r.Method == "server/discover":
			result = "error"
		case r.Method == "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"a","version":"1"}}`
		case strings.HasPrefix(r.Method, "notifications/"):
			return ""
		default:
			result = page(r)
		}
		if result == "error" {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":`+id+`,"error":{"code":-32000,"message":"not today"}}`, r.ID)
		}
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":`+id+`,"result":%s}`, r.ID, result)
	}
	if over == "pipes" {
		server := &scripted{t: t, answer: func(s *saying, r request) {
			if m := message(r); m != "" {
				s.line("%s", m)
			}
		}}
		return Server{Start: server.start}
	}
	address := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q request
		if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&q) != nil {
			return
		}
		m := message(q)
		switch {
		case m == "":
			w.WriteHeader(http.StatusAccepted)
		case over == "JSON":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, m)
		case over == "events":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, ": wait\n\nevent: message\r\nid: 7\r\ndata: %s\r\n\r\n", strings.ReplaceAll(m, `,"`, ",\r\ndata: \""))
		}
	}))
	return Server{URL: address, Client: clientOf(t, Remote{URL: address})}
}

var ways = []string{"pipes", "JSON", "events"}

// TestAcceptsTextIDs has a server that writes each id as a text.
func TestAcceptsTextIDs(t *testing.T) {
	t.Parallel()
	for _, over := range ways {
		for _, form := range []string{`"%s"`, `"%s.0"`, `%s.0`} {
			t.Run(over+" "+form, func(t *testing.T) {
				server := quirky(t, over, form, func(r request) string {
					switch {
					case r.Method == "tools/list":
						return `{"tools":` + strings.Replace(oneTool, `]`, `,{"name":"y","inputSchema":{}}]`, 1) + `}`
					case strings.Contains(string(r.Params), `"y"`):
						return "error"
					}
					return `{"content":[{"type":"text","text":"a<b"}]}`
				})
				server.StartTimeout, server.CallTimeout = time.Hour, time.Hour
				s := open(t, server)
				must.Same(t, "a<b", toolstest.Output(t, call(t, s, "x", "{}")))
				must.Contain(t, toolstest.Failure(t, call(t, s, "y", "{}")), "not today")
			})
		}
	}
}

// TestKeepsOtherMessages has messages with other ids in texts, which must stay as they are.
func TestKeepsOtherMessages(t *testing.T) {
	t.Parallel()
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":"1","method":"ping"}`,
		`{"jsonrpc":"2.0","id":"r1","result":{}}`,
		`{"jsonrpc":"2.0","id":"1.5","result":{}}`,
		`{"jsonrpc":"2.0","id":"","result":{}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"nextCursor":"a"}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"nextCursor":null}}`,
		`{"jsonrpc":"2.0","id":1,"result":[""]}`,
		`[]`, `7`, `{`,
	} {
		must.Same(t, message, string(fromServer([]byte(message))))
	}
}

// TestFollowsEmptyCursors has lists with an empty cursor, which goes on: only an absent or null one ends a list.
func TestFollowsEmptyCursors(t *testing.T) {
	t.Parallel()
	const absent = "(absent)"
	for _, test := range []struct {
		name  string
		pages map[string]string // by cursor: the item, and what follows it
		want  []string
	}{
		{"a page behind", map[string]string{absent: `a,"nextCursor":""`, "": `b`}, []string{"a", "b"}},
		{"null behind", map[string]string{absent: `a,"nextCursor":""`, "": `b,"nextCursor":null`}, []string{"a", "b"}},
		{"between others", map[string]string{absent: `a,"nextCursor":"2"`, "2": `b,"nextCursor":""`, "": `c,"nextCursor":"3"`, "3": `d`}, []string{"a", "b", "c", "d"}},
		{"it begins anew", map[string]string{absent: `a,"nextCursor":""`, "": `a,"nextCursor":""`}, []string{"a"}},
		{"it begins anew behind others", map[string]string{absent: `a,"nextCursor":"2"`, "2": `b,"nextCursor":""`, "": `a,"nextCursor":"2"`}, []string{"a", "b"}},
		{"it is refused", map[string]string{absent: `a,"nextCursor":""`}, []string{"a"}},
		{"it comes again", map[string]string{absent: `a,"nextCursor":""`, "": `b,"nextCursor":""`}, []string{"a", "b"}},
	} {
		for _, over := range ways {
			t.Run(test.name+" "+over, func(t *testing.T) {
				s := open(t, quirky(t, over, "%s", func(r request) string {
					kind, item := "tools", `{"name":%q,"inputSchema":{}}`
					switch r.Method {
					case "resources/list":
						kind, item = "resources", `{"name":"n","uri":%q}`
					case "resources/templates/list":
						kind, item = "resourceTemplates", `{"name":"n","uriTemplate":%q}`
					}
					var params struct{ Cursor *string }
					json.Unmarshal(r.Params, &params)
					cursor := absent
					if params.Cursor != nil {
						cursor = *params.Cursor
					}
					page, there := test.pages[cursor]
					if !there {
						return "error"
					}
					name, next, more := strings.Cut(page, ",")
					if more {
						next = "," + next
					}
					return fmt.Sprintf(`{"%s":[`+item+`]%s}`, kind, name, next)
				}))
				var got []string
				for _, tool := range s.List().Tools {
					got = append(got, tool.Tool)
				}
				must.Same(t, test.want, got)
				for _, tool := range []string{"list_mcp_resources", "list_mcp_resource_templates"} {
					must.Same(t, test.want, listed(t, s, tool, `{}`), tool)
					must.Same(t, test.want, listed(t, s, tool, `{"server":"test"}`), tool, "page by page")
				}
			})
		}
	}
}

// listed is the addresses that a tool lists, page by page.
func listed(t *testing.T, s *Session, tool, arguments string) []string {
	t.Helper()
	var all []string
	for range 10 {
		var answer struct {
			Resources  []resource `json:"resources"`
			Templates  []resource `json:"resource_templates"`
			NextCursor *string    `json:"next_cursor"`
			Problems   []string   `json:"problems"`
		}
		r := call(t, s, tool, arguments)
		if err := json.Unmarshal([]byte(r.Output), &answer); err != nil || r.Failed || answer.Problems != nil {
			t.Fatalf("got %+v, %v", r, err)
		}
		for _, r := range slices.Concat(answer.Resources, answer.Templates) {
			all = append(all, r.URI+r.URITemplate)
		}
		if answer.NextCursor == nil {
			return all
		}
		raw, _ := json.Marshal(map[string]string{"server": "test", "cursor": *answer.NextCursor})
		arguments = string(raw)
	}
	return append(all, "and so on")
}

// TestReportsRepeatedResourceCursors has a server that repeats a cursor.
func TestReportsRepeatedResourceCursors(t *testing.T) {
	t.Parallel()
	s := open(t, quirky(t, "pipes", "%s", func(r request) string {
		if r.Method == "tools/list" {
			return `{"tools":[]}`
		}
		return `{"resources":[{"name":"n","uri":"u"}],"resourceTemplates":[{"name":"n","uriTemplate":"u"}],"nextCursor":"again"}`
	}))
	for _, tool := range []string{"list_mcp_resources", "list_mcp_resource_templates"} {
		for _, arguments := range []string{`{}`, `{"server":"test","cursor":"again"}`} {
			if r := call(t, s, tool, arguments); !strings.Contains(r.Output, `the cursor \"again\" came again`) || strings.Contains(r.Output, "next_cursor") {
				t.Errorf("%s %s: got %+v", tool, arguments, r)
			}
		}
	}
}
