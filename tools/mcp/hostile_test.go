package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/tools/toolstest"
)

// virtually runs a subtest on a clock that moves only while all of it waits: a slow machine
// misses no limit then.
func virtually(t *testing.T, name string, test func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

func TestFallsBackToOlderRevision(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		discover func(*saying, request) // what the first process does when it is asked for the newest
		started  int
	}{
		{"refuses what it does not know", func(s *saying, r request) { s.refuse(r, -32601, "what?") }, 1},
		{"ends at what it does not know", func(s *saying, _ request) { s.exit() }, 2},
		{"is silent on what it does not know", func(*saying, request) {}, 2},
	} {
		virtually(t, test.name, func(t *testing.T) {
			server := &scripted{t: t, answer: func(s *saying, r request) {
				if r.Method == "server/discover" {
					test.discover(s, r)
					return
				}
				s.initialized(r, oneTool)
			}}
			s := open(t, Server{Start: server.start, probe: 50 * time.Millisecond})
			if l := s.List(); l.Revision != "2025-11-25" || l.Restarted != (test.started == 2) || server.started != test.started {
				t.Errorf("got %+v after %d starts", l, server.started)
			}
		})
	}
}

func TestSlowServerGetsNewestRevision(t *testing.T) { synctest.Test(t, slowServer) }

func slowServer(t *testing.T) {
	server := &scripted{t: t}
	server.answer = func(s *saying, r request) {
		switch {
		case s.number == 1: // it is not up yet
		case r.Method == "server/discover":
			s.result(r, `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
		case r.Method == "tools/list":
			s.result(r, `{"tools":`+oneTool+`}`)
		default:
			s.refuse(r, -32601, "unknown")
		}
	}
	must.Same(t, newestRevision, open(t, Server{Start: server.start, probe: 50 * time.Millisecond}).List().Revision)
	must.Same(t, 3, server.started)
}

// ok initializes, and lists tools.
func ok(tools string) func(*saying, request) {
	return func(s *saying, r request) { s.initialized(r, tools) }
}

// listing initializes, and has list answer the request for the tools.
func listing(list func(*saying, request)) func(*saying, request) {
	return func(s *saying, r request) {
		if r.Method == "tools/list" {
			list(s, r)
			return
		}
		s.initialized(r, "")
	}
}

// samePage initializes, and lists the same page for ever.
func samePage(page string) func(*saying, request) {
	return listing(func(s *saying, r request) { s.result(r, page) })
}

var unusable = []struct {
	name   string
	server Server
	answer func(*saying, request)
	reason Reason
	words  string
}{
	{"silent", Server{StartTimeout: 200 * time.Millisecond}, func(*saying, request) {}, ReasonStart, "did not start within 0.2 s; set mcp_servers.test.start_timeout higher"},
	{"ends", Server{}, func(s *saying, _ request) { s.exit() }, ReasonStart, "ended before it answered"},
	{"prints text", Server{StartTimeout: 200 * time.Millisecond}, func(s *saying, _ request) { s.line("Listening on \x1b[31m8080") }, ReasonProtocol, `"Listening on [31m8080"`},
	{"refuses all", Server{}, func(s *saying, r request) { s.refuse(r, -32000, "license\x07 expired") }, ReasonProtocol, "license expired"},
	{"speaks an unknown revision", Server{}, func(s *saying, r request) {
		s.result(r, `{"protocolVersion":"1999-01-01","capabilities":{},"serverInfo":{"name":"a","version":"1"}}`)
	}, ReasonProtocol, "1999-01-01"},
	{"one line of 17 MiB", Server{}, func(s *saying, r request) { s.line("%s", strings.Repeat("x", 17<<20)) }, ReasonProtocol, "more than 16 MiB"},
	{"lists no tools", Server{}, listing(func(s *saying, r request) { s.refuse(r, -32603, "broken") }), ReasonProtocol, "broken"},
	{"lists something else", Server{}, ok(`7`), ReasonProtocol, "does not keep to the protocol"},
	{"hangs while it lists", Server{StartTimeout: 300 * time.Millisecond}, listing(func(*saying, request) {}), ReasonStart, "did not start within"},
	{"ends while it lists", Server{}, listing(func(s *saying, _ request) { s.exit() }), ReasonStart, "ended"},
	{"no tools on pages that come back", Server{}, samePage(`{"tools":[],"nextCursor":"again"}`), ReasonProtocol, `has no end: the cursor "again" came again`},
	{"one page that comes back", Server{}, samePage(`{"tools":` + oneTool + `,"nextCursor":"again"}`), ReasonProtocol, `has no end: the cursor "again" came again`},
	{"two cursors in turn", Server{}, listing(func(s *saying, r request) {
		var params struct{ Cursor string }
		json.Unmarshal(r.Params, &params)
		s.result(r, fmt.Sprintf(`{"tools":[{"name":"x%s","inputSchema":{}}],"nextCursor":%q}`, params.Cursor, map[string]string{"": "one", "one": "two", "two": "one"}[params.Cursor]))
	}), ReasonProtocol, `has no end: the cursor "one" came again`},
	{"a hostile cursor", Server{}, samePage(`{"tools":[],"nextCursor":"\u001b[31m\u202e` + strings.Repeat("x", 1<<20) + `"}`), ReasonProtocol, `has no end: the cursor "[31mxxx`},
	{"pages without end", Server{}, listing(func(s *saying, r request) {
		s.result(r, fmt.Sprintf(`{"tools":[],"nextCursor":"%s"}`, r.ID))
	}), ReasonProtocol, "has no end: it has more than 500 pages"},
	{"too many tools", Server{}, ok(manyTools(maxTools + 1)), ReasonProtocol, "more than 5000 tools"},
	{"two of one name", Server{}, ok(`[{"name":"x","inputSchema":{}},{"name":"x","inputSchema":{}}]`), ReasonProtocol, `two tools with the name "x"`},
	{"no name", Server{}, ok(`[{"name":"","inputSchema":{}}]`), ReasonProtocol, "name of 0 bytes"},
	{"a name of a megabyte", Server{}, ok(`[{"name":"` + strings.Repeat("n", 1<<20) + `","inputSchema":{}}]`), ReasonProtocol, "name of 1048576 bytes"},
	{"a huge schema", Server{}, ok(`[{"name":"x","inputSchema":{"type":"object","description":"` + strings.Repeat("n", 1<<20) + `"}}]`), ReasonProtocol, "more than 512 KiB"},
	{"a tool of text", Server{}, ok(`[{"name":"x","inputSchema":{"type":"string"}}]`), ReasonProtocol, "take it out by deny"},
	{"lacks a tool", Server{Tools: []string{"x", "y"}}, ok(oneTool), ReasonToolMissing, "has no tool y; it has x;"},
	{"lacks a denied tool", Server{Tools: []string{"*"}, Deny: []string{"z"}}, ok(oneTool), ReasonToolMissing, "has no tool z"},
	{"lacks all", Server{Tools: []string{"x"}}, ok("[]"), ReasonToolMissing, "it has none"},
}

func TestRejectsUnusableServers(t *testing.T) {
	t.Parallel()
	for _, test := range unusable {
		virtually(t, test.name, func(t *testing.T) {
			server := &scripted{t: t, answer: test.answer}
			test.server.Name, test.server.Start = "test", server.start
			if test.server.Tools == nil {
				test.server.Tools = []string{allTools}
			}
			if test.server.StartTimeout == 0 {
				test.server.StartTimeout = time.Minute
			}
			_, err := Open(t.Context(), test.server)
			wantError(t, err, test.reason, test.words)
			if err != nil && len(err.Error()) > 2000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

func manyTools(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`{"name":"tool_%d","inputSchema":{"type":"object"}}`, i))
	}
	return "[" + strings.Join(all, ",") + "]"
}

func TestReportsFailedStart(t *testing.T) {
	t.Parallel()
	_, err := Open(t.Context(), Server{Name: "test", Start: func(context.Context) (*Process, error) { return nil, fmt.Errorf("no such program") }})
	wantError(t, err, ReasonStart, "could not be started: no such program")
}

func TestCancelEndsServerStart(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	server := &scripted{t: t, answer: func(*saying, request) { cancel() }}
	_, err := Open(ctx, Server{Name: "test", Start: server.start})
	wantError(t, err, ReasonStart, "the run was ended")
}

func TestSkipsInvalidMessages(t *testing.T) {
	t.Parallel()
	server := &scripted{t: t, answer: func(s *saying, r request) {
		s.line("debug: got %s", r.Method)
		s.line(`{"jsonrpc":"2.0","id":99,"result":{}}`)
		s.line(`[{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}]`)
		s.line(`{}`)
		if !s.initialized(r, oneTool) {
			s.result(r, `{"content":[{"type":"text","text":"done"}]}`)
		}
	}}
	s := open(t, Server{Start: server.start})
	must.Same(t, "done", toolstest.Output(t, call(t, s, "x", "{}")))
}

// notices collects what a session told.
type notices struct {
	mu    sync.Mutex
	all   []Notice
	ended chan struct{}
}

func (n *notices) observe(notice Notice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, notice)
	if notice == Ended {
		close(n.ended)
	}
}

// flood says 200 lines of a megabyte.
func flood(head, tail string) func(*saying, request) {
	return func(s *saying, _ request) {
		line := []byte(head + strings.Repeat("x", 1<<20) + tail + "\n")
		for range 200 {
			s.out.Write(line)
		}
	}
}

var breaking = []struct {
	name   string
	answer func(*saying, request)
	words  string
	ended  bool
}{
	{"refused", func(s *saying, r request) { s.refuse(r, -32000, "no\x1b such \u202ething") }, "refused the call: no such thing", false},
	{"silent", func(*saying, request) {}, "did not answer within", false},
	{"not a result", func(s *saying, r request) { s.result(r, `[1]`) }, "failed", false},
	{"content of an unknown kind", func(s *saying, r request) { s.result(r, `{"content":[{"type":"smell"}]}`) }, "smell", false},
	{"ends", func(s *saying, _ request) { s.exit() }, "has ended (it closed its output: it has ended)", true},
	{"a huge answer", func(s *saying, r request) {
		s.result(r, `{"content":[{"type":"text","text":"`+strings.Repeat("x", 17<<20)+`"}]}`)
	}, "more than 16 MiB", true},
	{"notifications", flood(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"`, `"}}`), "more than 32 MiB that answer nothing", true},
	{"answers that nobody asked for", flood(`{"jsonrpc":"2.0","id":1000,"result":"`, `"}`), "more than 32 MiB that answer nothing", true},
	{"requests", func(s *saying, r request) {
		for i := range 1000 { // it does not read the answers meanwhile
			s.line(`{"jsonrpc":"2.0","id":"r%d","method":"ping"}`, i)
		}
	}, "more than 64 requests", true},
}

func TestBrokenCallsFail(t *testing.T) {
	t.Parallel()
	for _, test := range breaking {
		virtually(t, test.name, func(t *testing.T) {
			server := &scripted{t: t, answer: func(s *saying, r request) {
				if !s.initialized(r, oneTool) {
					test.answer(s, r)
				}
			}}
			told := &notices{ended: make(chan struct{})}
			limit := time.Minute
			if test.name == "silent" {
				limit = 100 * time.Millisecond
			}
			s := open(t, Server{Start: server.start, CallTimeout: limit, Observe: told.observe})
			r := call(t, s, "x", "{}")
			must.Contain(t, toolstest.Failure(t, r), test.words)
			if test.ended {
				<-told.ended
				if s.Ended() == nil || len(told.all) != 1 || !strings.Contains(r.Output, "not made again") {
					t.Errorf("got %v, %+v", s.Ended(), told.all)
				}
				must.Contain(t, toolstest.Failure(t, call(t, s, "x", "{}")), "has ended")
				return
			}
			must.Is(t, nil, s.Ended(), "it ended")
		})
	}
}

func TestCancelSendsNotification(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	server := &scripted{t: t, got: make(chan request, 100), answer: func(s *saying, r request) {
		if !s.initialized(r, oneTool) {
			cancel()
		}
	}}
	s := open(t, Server{Start: server.start})
	must.Contain(t, toolstest.Failure(t, dispatch(ctx, t, s, "x", "{}")), "aborted")
	var called request
	for r := range server.got {
		if r.Method == "tools/call" {
			called = r
		}
		if r.Method != "notifications/cancelled" {
			continue
		}
		var params struct{ RequestID json.RawMessage }
		if json.Unmarshal(r.Params, &params) != nil || string(params.RequestID) != string(called.ID) {
			t.Errorf("cancelled %s, called %s", params.RequestID, called.ID)
		}
		break
	}
	if r := call(t, s, "x", `[`); !r.Failed {
		t.Errorf("got %+v", r)
	}
}

func TestUnreadCallsTimeOut(t *testing.T) { synctest.Test(t, unreadCalls) }

func unreadCalls(t *testing.T) {
	hold := make(chan struct{})
	defer close(hold)
	server := &scripted{t: t, answer: func(s *saying, r request) {
		if s.initialized(r, oneTool) {
			return
		}
		select {
		case <-hold:
		case <-s.ended:
		}
	}}
	s := open(t, Server{Start: server.start, CallTimeout: 50 * time.Millisecond})
	for range 3 {
		must.Contain(t, toolstest.Failure(t, call(t, s, "x", `{"text":"`+strings.Repeat("x", 1<<20)+`"}`)), "did not answer within")
	}
	must.Do(t, s.Close())
}

func TestChangedToolsKeepList(t *testing.T) {
	t.Parallel()
	server := &scripted{t: t, answer: func(s *saying, r request) {
		if s.initialized(r, oneTool) {
			return
		}
		for range 3 {
			s.line(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		}
		s.result(r, `{"content":[{"type":"text","text":"done"}]}`)
	}}
	told := &notices{ended: make(chan struct{})}
	s := open(t, Server{Start: server.start, Observe: told.observe})
	call(t, s, "x", "{}")
	call(t, s, "x", "{}")
	must.Same(t, []Notice{ToolsChanged}, told.all)
	must.Same(t, 1, len(s.List().Tools), s.List())
}

func TestOffersAllowedTools(t *testing.T) {
	t.Parallel()
	tools := `[{"name":"a","inputSchema":{}},{"name":"b","inputSchema":{}},{"name":"c","inputSchema":{}}]`
	server := &scripted{t: t, answer: func(s *saying, r request) { s.initialized(r, tools) }}
	for _, test := range []struct{ allow, deny, want []string }{
		{[]string{"*"}, nil, []string{"a", "b", "c"}},
		{[]string{"*"}, []string{"b"}, []string{"a", "c"}},
		{[]string{"b", "a"}, []string{"a"}, []string{"b"}},
		{[]string{}, nil, nil},
	} {
		s := open(t, Server{Start: server.start, Tools: test.allow, Deny: test.deny})
		var got []string
		offered, err := Offer([]List{s.List()}, nil)
		for _, o := range offered {
			got = append(got, o.Tool)
		}
		must.Do(t, err)
		must.Same(t, test.want, got)
		must.Same(t, 3, len(s.List().Tools))
	}
}

func TestSanitizesHostileDescriptions(t *testing.T) {
	t.Parallel()
	server := &scripted{t: t, answer: func(s *saying, r request) {
		if r.Method == "initialize" {
			s.result(r, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"ev\u001b[0mil","version":"`+strings.Repeat("9", 5000)+`"},"instructions":"`+strings.Repeat("do ", 1<<20)+`"}`)
			return
		}
		s.initialized(r, `[{"name":"a/b\u202e c","description":"`+strings.Repeat("x", 1<<20)+`\u0000","inputSchema":{"type":"object","properties":{"p":{"type":"string","description":"hidden \udb40\udc41\u200b words"}}}}]`)
	}}
	s := open(t, Server{Start: server.start})
	l := s.List()
	if l.Name != "ev[0mil" || len(l.Version) > 200 || len(l.Instructions) > 9000 || len(l.Tools[0].Description) > 9000 {
		t.Errorf("got %q, %d, %d, %d", l.Name, len(l.Version), len(l.Instructions), len(l.Tools[0].Description))
	}
	offered, err := Offer([]List{l}, nil)
	if err != nil || offered[0].Spec.Name != "mcp__test__a_b__c" || !strings.Contains(string(offered[0].Spec.Parameters), `"hidden  words"`) {
		t.Errorf("got %+v, %v", offered, err)
	}
}

func TestDeclinesQuestions(t *testing.T) {
	t.Parallel()
	var asked request
	answers := 0
	server := &scripted{t: t, answer: func(s *saying, r request) {
		switch {
		case r.Method == "": // an answer of the client
			if answers++; answers == 3 {
				s.result(asked, `{"content":[{"type":"text","text":"done"}]}`)
			}
		case s.initialized(r, oneTool):
		case r.Method == "tools/call":
			asked = r
			s.line(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"May I?","requestedSchema":{"type":"object","properties":{}}}}`)
			s.line(`{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`)
			s.line(`{"jsonrpc":"2.0","id":"r","method":"roots/list"}`)
		}
	}}
	s := open(t, Server{Start: server.start})
	r := call(t, s, "x", "{}")
	if r.Output != "done" || r.Detail["declined"] != int64(1) {
		t.Errorf("got %+v", r)
	}
}

// brokenPipe is the input of a process that ends: its output ends a moment after its input.
type brokenPipe struct {
	output *io.PipeWriter
	err    error
}

func (p brokenPipe) Write([]byte) (int, error) {
	time.AfterFunc(20*time.Millisecond, func() { p.output.Close() })
	return 0, p.err
}

func (p brokenPipe) Close() error { return nil }

func TestReportsServerEndDuringWrite(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]error{
		"it closed its input":                 syscall.EPIPE,
		"its input was closed after its exit": &os.PathError{Op: "write", Path: "|1", Err: os.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := func(context.Context) (*Process, error) {
				output, w := io.Pipe()
				return &Process{Output: output, Input: brokenPipe{w, broken}, End: w.Close}, nil
			}
			_, err := Open(t.Context(), Server{Name: "a", Start: start})
			failure, _ := errors.AsType[*Error](err)
			if failure == nil || failure.Reason != ReasonStart || !strings.Contains(failure.Words, "ended before it answered") {
				t.Errorf("got %v", err)
			}
		})
	}
}
