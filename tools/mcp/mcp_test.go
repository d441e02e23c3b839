package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/toolstest"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type weather struct {
	City string `json:"city" jsonschema:"where"`
}

// exampleServer is a server of the library with tools and resources, which knows no revision after the one that is named.
func exampleServer(revision string) *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: "example", Version: "1.2.3"}, &sdk.ServerOptions{Instructions: "Ask for cities."})
	if revision == olderRevision {
		server.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
			return func(ctx context.Context, method string, request sdk.Request) (sdk.Result, error) {
				if method == "server/discover" {
					return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "what?"}
				}
				return next(ctx, method, request)
			}
		})
	}
	sdk.AddTool(server, &sdk.Tool{Name: "weather", Description: "The weather of a city."},
		func(_ context.Context, _ *sdk.CallToolRequest, in weather) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "sunny in " + in.City}}}, nil, nil
		})
	sdk.AddTool(server, &sdk.Tool{Name: "fail", Description: "Fails."},
		func(context.Context, *sdk.CallToolRequest, weather) (*sdk.CallToolResult, any, error) {
			return nil, nil, fmt.Errorf("no such city")
		})
	server.AddResource(&sdk.Resource{Name: "note", URI: "note://one", MIMEType: "text/plain"},
		func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, MIMEType: "text/plain", Text: "buy milk"}}}, nil
		})
	server.AddResourceTemplate(&sdk.ResourceTemplate{Name: "notes", URITemplate: "note://{name}"},
		func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return nil, sdk.ResourceNotFoundError(r.Params.URI)
		})
	return server
}

// inProcess returns a function that connects to a server of the library in this process, by pipes.
func inProcess(t *testing.T, server *sdk.Server) func(context.Context) (*Process, error) {
	return func(context.Context) (*Process, error) {
		output, serverOut := io.Pipe()
		serverIn, input := io.Pipe()
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			server.Run(ctx, &sdk.IOTransport{Reader: serverIn, Writer: serverOut})
			serverOut.Close()
			serverIn.Close()
		}()
		return &Process{Output: output, Input: input, End: func() error {
			cancel()
			serverOut.Close()
			serverIn.Close()
			<-done
			return nil
		}}, nil
	}
}

// request is what a scripted server gets.
type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// scripted is a server that a function of the test is: it gets each message and says lines.
type scripted struct {
	t       *testing.T
	started int
	got     chan request // all that was said to it, if it is not nil
	answer  func(s *saying, r request)
}

// saying is what a scripted server can do.
type saying struct {
	number int // of the process, from 1
	out    *io.PipeWriter
	in     *io.PipeReader
	ended  chan struct{} // closed when the process is ended
}

func (s *saying) line(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

func (s *saying) result(r request, result string) {
	s.line(`{"jsonrpc":"2.0","id":%s,"result":%s}`, r.ID, result)
}

func (s *saying) refuse(r request, code int, message string) {
	raw, _ := json.Marshal(message)
	s.line(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, r.ID, code, raw)
}

// exit ends the process by itself.
func (s *saying) exit() {
	s.out.Close()
	s.in.Close()
}

func (s *scripted) start(context.Context) (*Process, error) {
	s.started++
	output, serverOut := io.Pipe()
	serverIn, input := io.Pipe()
	say := &saying{number: s.started, out: serverOut, in: serverIn, ended: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer serverOut.Close()
		reader := bufio.NewReader(serverIn)
		for {
			line, err := reader.ReadString('\n')
			if err != nil {
				return
			}
			var r request
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				s.t.Errorf("the server got %q: %v", line, err)
			}
			if s.got != nil {
				s.got <- r
			}
			s.answer(say, r)
		}
	}()
	return &Process{Output: output, Input: input, End: func() error {
		close(say.ended)
		say.exit()
		<-done
		return nil
	}}, nil
}

// initialized answers what a session of 2025-11-25 begins with; it says whether that was it.
func (s *saying) initialized(r request, tools string) bool {
	switch r.Method {
	case "server/discover":
		s.refuse(r, -32601, "method not found")
	case "initialize":
		s.result(r, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"scripted","version":"1"}}`)
	case "tools/list":
		s.result(r, `{"tools":`+tools+`}`)
	case "notifications/initialized", "notifications/cancelled":
	default:
		return false
	}
	return true
}

const oneTool = `[{"name":"x","description":"X.","inputSchema":{"type":"object"}}]`

func open(t *testing.T, server Server) *Session {
	t.Helper()
	if server.Name == "" {
		server.Name = "test"
	}
	if server.Tools == nil {
		server.Tools = []string{allTools}
	}
	s := must.Get(Open(t.Context(), server))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// call calls a tool of a session by the dispatcher, as a run does.
func call(t *testing.T, s *Session, tool, arguments string) tools.Result {
	t.Helper()
	return dispatch(t.Context(), t, s, tool, arguments)
}

func dispatch(ctx context.Context, t *testing.T, s *Session, tool, arguments string) tools.Result {
	t.Helper()
	offered := must.Get(Offer([]List{s.List()}, nil))(t)
	var all []tools.Tool
	name := ""
	for _, o := range offered {
		all = append(all, tools.Tool{Spec: o.Spec, Foreign: true, Mutates: true, Run: func(ctx context.Context, call tools.Call) (tools.Result, error) {
			return s.Call(ctx, o.Tool, json.RawMessage(call.Input))
		}})
		if o.Tool == tool {
			name = o.Spec.Name
		}
	}
	all = append(all, ResourceTools(func() []Resources {
		return []Resources{{Server: s.server.Name, Session: func(context.Context) (*Session, string) { return s, "" }}}
	})...)
	if name == "" {
		name = tool
	}
	d := &tools.Dispatcher{Registry: tools.New(all...), Outputs: &tools.Outputs{}}
	return d.Dispatch(ctx, []tools.Call{{ID: "1", Name: name, Input: arguments}})[0]
}

func TestUsesLibraryServers(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{newestRevision, olderRevision} {
		t.Run(revision, func(t *testing.T) {
			s := open(t, Server{Start: inProcess(t, exampleServer(revision))})
			l := s.List()
			if l.Revision != revision || l.Restarted || !l.Resources || len(l.Tools) != 2 || l.Name != "example" || l.Version != "1.2.3" || l.Instructions != "Ask for cities." {
				t.Errorf("got %+v", l)
			}
			must.Same(t, "sunny in Oslo", toolstest.Output(t, call(t, s, "weather", `{"city":"Oslo"}`)))
			must.Contain(t, toolstest.Failure(t, call(t, s, "weather", `{"town":"Oslo"}`)), "city")
			must.Same(t, "no such city", toolstest.Failure(t, call(t, s, "fail", `{"city":"Oslo"}`)))
			if err := s.Close(); err != nil || s.Ended() == nil {
				t.Errorf("it has not ended: %v", err)
			}
		})
	}
}

// A server may choose a revision before the ones that are asked for.
func TestEarlierRevisions(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{"2025-06-18", "2025-03-26", "2024-11-05"} {
		server := &scripted{t: t, answer: func(s *saying, r request) {
			if r.Method == "initialize" {
				s.result(r, `{"protocolVersion":"`+revision+`","capabilities":{"tools":{}},"serverInfo":{"name":"a","version":"1"}}`)
			} else if !s.initialized(r, oneTool) && r.Method == "tools/call" {
				s.result(r, `{"content":[{"type":"text","text":"done"}]}`)
			}
		}}
		s := open(t, Server{Start: server.start})
		must.Same(t, "done", call(t, s, "x", "{}").Output)
		must.Same(t, revision, s.List().Revision)
	}
}

// TestIgnoresLibraryDebugVariable starts a program with a value at which the library panics.
func TestIgnoresLibraryDebugVariable(t *testing.T) {
	t.Setenv("MCPGODEBUG", "not of its form")
	if said, err := exec.Command(os.Args[0], "-test.run=^$").CombinedOutput(); err != nil {
		t.Errorf("%s: %v", said, err)
	}
}

func wantError(t *testing.T, err error, reason Reason, words string) {
	t.Helper()
	e, ok := err.(*Error)
	if !ok || e.Reason != reason || !strings.Contains(e.Words, words) {
		t.Errorf("got %v, want %s with %q", err, reason, words)
	}
}
