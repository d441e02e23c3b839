package mcp

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/tools/toolstest"
)

func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

func clientOf(t *testing.T, remote Remote) *http.Client {
	t.Helper()
	return must.Get(NewClient(remote))(t)
}

func TestUsesServersOverHTTP(t *testing.T) {
	t.Parallel()
	for _, options := range []*sdk.StreamableHTTPOptions{nil, {Stateless: true}, {JSONResponse: true}} {
		for _, revision := range []string{newestRevision, olderRevision} {
			t.Run(fmt.Sprintf("%+v %s", options, revision), func(t *testing.T) {
				handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return exampleServer(revision) }, options)
				address := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("Authorization") != "Bearer token" || r.Header.Get("X-Team") != "ci" {
						w.WriteHeader(http.StatusUnauthorized)
						return
					}
					handler.ServeHTTP(w, r)
				}))
				headers := map[string]string{"X-Team": "ci", "Accept": "nothing"}
				s := open(t, Server{URL: address, Client: clientOf(t, Remote{URL: address, Headers: headers, Bearer: "token"})})
				if l := s.List(); len(l.Tools) != 2 || l.Revision != revision && revision == olderRevision {
					t.Errorf("got %+v", l)
				}
				must.Same(t, "sunny in Oslo", toolstest.Output(t, call(t, s, "weather", `{"city":"Oslo"}`)))
				if r := call(t, s, "read_mcp_resource", `{"server":"test","uri":"note://one"}`); r.Failed {
					t.Errorf("got %+v", r)
				}
				must.Do(t, s.Close())
			})
		}
	}
}

func TestRejectsUnusableAddresses(t *testing.T) {
	t.Parallel()
	elsewhere := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another host was asked") }))
	for _, test := range []struct {
		name    string
		handler http.Handler
		reason  Reason
		words   string
	}{
		{"redirects elsewhere", http.RedirectHandler(elsewhere, http.StatusTemporaryRedirect), ReasonStart, "it redirects to"},
		{"redirects to itself", http.RedirectHandler("/", http.StatusTemporaryRedirect), ReasonStart, "it redirects without end"},
		{"lets nobody in", status(http.StatusUnauthorized), ReasonStart, "Unauthorized"},
		{"is no such thing", status(http.StatusNotFound), ReasonStart, "Not Found"},
		{"is broken", status(http.StatusBadGateway), ReasonStart, "Bad Gateway"},
		{"says it in HTML", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, "<html>")
		}), ReasonStart, "text/html"},
		{"never answers", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}), ReasonStart, "did not answer within"},
		{"never ends", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			endless(w)
		}), ReasonStart, "more than 16 MiB"},
		{"never ends an error", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			endless(w)
		}), ReasonStart, "Bad Request"},
	} {
		t.Run(test.name, func(t *testing.T) {
			address, limit := serve(t, test.handler), time.Hour
			if test.words == "did not answer within" {
				limit = 2 * time.Second
			}
			_, err := Open(t.Context(), Server{
				Name: "test", URL: address, Client: clientOf(t, Remote{URL: address}),
				Tools: []string{allTools}, StartTimeout: limit,
			})
			wantError(t, err, test.reason, test.words)
		})
	}
	_, err := Open(t.Context(), Server{Name: "test", URL: "http://127.0.0.1:1/", Client: clientOf(t, Remote{URL: "http://127.0.0.1:1/"})})
	wantError(t, err, ReasonStart, "could not be reached: 127.0.0.1:1: connection refused; check url")
}

func endless(w io.Writer) {
	chunk := []byte(strings.Repeat("x", 1<<20))
	for range 200 {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

// scriptedHTTP is a server of 2025-11-25 whose calls are answered by a function; one that holds
// does not let a session end.
func scriptedHTTP(holds bool, call func(w http.ResponseWriter, r *http.Request, id json.RawMessage)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			if holds {
				<-r.Context().Done()
			}
			return
		}
		var q request
		json.NewDecoder(r.Body).Decode(&q)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Mcp-Session-Id", "1")
		switch q.Method {
		case "initialize":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"a","version":"1"}}}`, q.ID)
		case "tools/list":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":%s}}`, q.ID, oneTool)
		case "tools/call":
			call(w, r, q.ID)
		case "server/discover":
			w.WriteHeader(http.StatusBadRequest)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	})
}

// status answers with a status alone.
func status(code int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
}

// failing is a call that is answered so.
func failing(code int) func(http.ResponseWriter, *http.Request, json.RawMessage) {
	return func(w http.ResponseWriter, r *http.Request, _ json.RawMessage) { status(code).ServeHTTP(w, r) }
}

var callsOverHTTPThatBreak = []struct {
	name  string
	call  func(w http.ResponseWriter, r *http.Request, id json.RawMessage)
	limit time.Duration
	words string
	ended bool
}{
	{"silent", func(_ http.ResponseWriter, r *http.Request, _ json.RawMessage) { <-r.Context().Done() }, 100 * time.Millisecond, "did not answer within", false},
	{"busy", failing(http.StatusTooManyRequests), time.Hour, "Too Many Requests", false},
	{"endless", func(w http.ResponseWriter, _ *http.Request, _ json.RawMessage) { endless(w) }, time.Hour, "more than 16 MiB", true},
	{"a stream that is silent", func(w http.ResponseWriter, r *http.Request, _ json.RawMessage) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}, 100 * time.Millisecond, "did not answer within", false},
	{"a stream of notifications", func(w http.ResponseWriter, _ *http.Request, _ json.RawMessage) {
		w.Header().Set("Content-Type", "text/event-stream")
		event := []byte(`data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"` + strings.Repeat("x", 1<<20) + "\"}}\n\n")
		for range 200 {
			if _, err := w.Write(event); err != nil {
				return
			}
		}
	}, time.Hour, "more than 32 MiB", true},
	{"gone behind its proxy", failing(http.StatusBadGateway), time.Hour, "502 Bad Gateway", true},
	{"broken once", failing(http.StatusInternalServerError), time.Hour, "Internal Server Error", false},
	{"an end in the middle", func(w http.ResponseWriter, _ *http.Request, _ json.RawMessage) { panic(http.ErrAbortHandler) }, time.Hour, "it can't be reached", true},
	{"a huge event", func(w http.ResponseWriter, _ *http.Request, _ json.RawMessage) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: ")
		endless(w)
	}, time.Hour, "has ended", true},
	{"a session that is gone", failing(http.StatusNotFound), time.Hour, "session not found", true},
}

func TestBrokenHTTPCallsFail(t *testing.T) {
	t.Parallel()
	for _, test := range callsOverHTTPThatBreak {
		t.Run(test.name, func(t *testing.T) {
			address := serve(t, scriptedHTTP(test.name == "silent", test.call))
			s := open(t, Server{URL: address, Client: clientOf(t, Remote{URL: address}), CallTimeout: test.limit})
			must.Contain(t, toolstest.Failure(t, call(t, s, "x", "{}")), test.words)
			must.Same(t, test.ended, s.Ended() != nil, "it ended", s.Ended())
		})
	}
}

// TestSilentSubscriptionSelectsOlderRevision is about a server of the newest revision that does not answer the request
// to be told of changes; the older revision has no such request.
func TestSilentSubscriptionSelectsOlderRevision(t *testing.T) {
	t.Parallel()
	old := scriptedHTTP(false, func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"done"}]}}`, id)
	})
	address := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Mcp-Method") {
		case "server/discover":
			var q request
			json.NewDecoder(r.Body).Decode(&q)
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}}`, q.ID)
		case "subscriptions/listen":
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		default:
			old.ServeHTTP(w, r)
		}
	}))
	s := open(t, Server{URL: address, Client: clientOf(t, Remote{URL: address}), probe: 200 * time.Millisecond})
	if r := call(t, s, "x", "{}"); r.Output != "done" || s.List().Revision != olderRevision || !s.List().Restarted {
		t.Errorf("got %+v of %+v", r, s.List())
	}
}

// TestReportsChangedToolsInAnswer is about a revision that is not asked to tell of changes.
func TestReportsChangedToolsInAnswer(t *testing.T) {
	t.Parallel()
	address := serve(t, scriptedHTTP(false, func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"done\"}]}}\n\n", id)
	}))
	changed := make(chan Notice, 10)
	s := open(t, Server{URL: address, Client: clientOf(t, Remote{URL: address}), Observe: func(n Notice) { changed <- n }})
	must.Same(t, "done", call(t, s, "x", "{}").Output, s.List())
	must.Same(t, olderRevision, s.List().Revision, s.List())
	must.Same(t, ToolsChanged, <-changed)
}

// TestDeclinesQuestionsOnSideStream is about servers that ask on the stream beside the calls while a call
// waits for the answer, and about streams that are refused, hold, or carry what is no request.
func TestDeclinesQuestionsOnSideStream(t *testing.T) {
	t.Parallel()
	const question = `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"May I?","requestedSchema":{"type":"object","properties":{}}}}`
	stream := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, text)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}
	for _, test := range []struct {
		name   string
		stream http.HandlerFunc
		asks   bool
	}{
		{"a question", stream("event: message\ndata: " + question + "\n\n"), true},
		{"a question behind noise", stream(": hello\n\ndata: no message\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\ndata: " + question + "\n\n"), true},
		{"a refusal", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, false},
		{"a page", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }, false},
		{"silence", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, false},
		{"a stream that breaks", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			answered := make(chan string, 1)
			rest := scriptedHTTP(false, func(w http.ResponseWriter, r *http.Request, id json.RawMessage) {
				said := "done"
				if test.asks {
					select {
					case said = <-answered:
					case <-r.Context().Done():
						return
					}
				}
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%q}]}}`, id, said)
			})
			address := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					test.stream(w, r)
					return
				}
				raw, _ := io.ReadAll(r.Body)
				if strings.Contains(string(raw), `"id":"q"`) {
					answered <- string(raw)
				}
				r.Body = io.NopCloser(strings.NewReader(string(raw)))
				rest.ServeHTTP(w, r)
			}))
			s := open(t, Server{URL: address, Client: clientOf(t, Remote{URL: address})})
			r := call(t, s, "x", "{}")
			if want := map[bool]string{true: `"action":"decline"`, false: "done"}[test.asks]; r.Failed || !strings.Contains(r.Output, want) || s.Ended() != nil {
				t.Errorf("got %+v, ended %v", r, s.Ended())
			}
		})
	}
}

func TestCheckURL(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://mcp.example/x":           "",
		"http://localhost:8080":           "",
		"http://127.0.0.1:8080":           "",
		"http://[::1]:8080":               "",
		"http://10.0.0.7/mcp":             "",
		"http://192.168.1.1/mcp":          "",
		"http://[fd00::1]/mcp":            "",
		"http://mcp.internal/x":           "", // what it resolves to is looked at when it is reached
		"http://mcp.example.com/x":        "private and loopback",
		"http://169.254.169.254/":         "private and loopback",
		"http://8.8.8.8/":                 "private and loopback",
		"http://[::ffff:8.8.8.8]/":        "private and loopback",
		"http://0.0.0.0/":                 "private and loopback",
		"ftp://mcp.example":               "must begin with https://",
		"mcp.example":                     "must begin with https://",
		"https://":                        "names no host",
		"https://user:secret@mcp.example": "must not hold a user",
		"https://mcp.example/#x":          "fragment",
		"https://mcp example":             "no URL",
	} {
		_, err := checkURL(address)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", address, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error has the password: %v", err)
		}
	}
}

// TestClientRefusesOtherAddresses is about a name that looks near and is not; nothing is sent.
func TestClientRefusesOtherAddresses(t *testing.T) {
	t.Parallel()
	client := clientOf(t, Remote{URL: "http://mcp.internal:80"})
	transport := client.Transport.(*originTransport).base
	for address, far := range map[string]bool{"192.0.2.1:80": true, "[2001:db8::1]:80": true} {
		_, err := transport.DialContext(t.Context(), "tcp", address)
		must.Same(t, far, err != nil && strings.Contains(err.Error(), "private and loopback"), address, err)
	}
	must.Fail(t, "may not be reached", must.Err(client.Get("http://other.internal/")))
}
