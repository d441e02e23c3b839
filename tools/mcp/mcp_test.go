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
	"time"

	"github.com/agent-ci/agent-ci/tools"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

// serverVariable names, in a process that a test starts, what the test binary is to be.
const serverVariable = "MCP_TEST_SERVER"

func TestMain(m *testing.M) {
	if kind := os.Getenv(serverVariable); kind != "" {
		serveKind(kind)
		return
	}
	goleak.VerifyTestMain(m)
}

// serveKind is a server in a process of its own, over its standard streams.
func serveKind(kind string) {
	switch kind {
	case "sdk":
		if err := exampleServer().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	case "flood":
		chunk := strings.Repeat("x", 1<<20)
		for range 200 {
			fmt.Print(chunk)
		}
	}
}

type weather struct {
	City string `json:"city" jsonschema:"where"`
}

// exampleServer is a server of the library with tools and resources.
func exampleServer() *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: "example", Version: "1.2.3"}, &sdk.ServerOptions{Instructions: "Ask for cities."})
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

// child starts the test binary as a server.
func child(t *testing.T, kind string) func(context.Context) (*Process, error) {
	return func(context.Context) (*Process, error) {
		command := exec.Command(os.Args[0])
		command.Env = append(os.Environ(), serverVariable+"="+kind)
		command.Stderr = os.Stderr
		input, err := command.StdinPipe()
		if err != nil {
			return nil, err
		}
		output, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		command.Stdout = w
		if err := command.Start(); err != nil {
			return nil, err
		}
		w.Close()
		return &Process{Output: output, Input: input, End: func() error {
			command.Process.Kill()
			command.Wait()
			return nil
		}}, nil
	}
}

// within the test, a server of the library behind pipes.
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
		server.Tools = []string{AllTools}
	}
	s, err := Open(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
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
	offered, err := Offer([]List{s.List()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []tools.Tool
	name := ""
	for _, o := range offered {
		all = append(all, s.Tool(o))
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

func TestServersOfTheLibrary(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		start func(context.Context) (*Process, error)
	}{
		{"in this process", inProcess(t, exampleServer())},
		{"in a child", child(t, "sdk")},
	} {
		for _, protocol := range []string{"", "2026-07-28", "2025-11-25", "2025-06-18", "2024-11-05"} {
			t.Run(test.name+" "+protocol, func(t *testing.T) {
				s := open(t, Server{Start: test.start, Protocol: protocol})
				l := s.List()
				want := protocol
				if want == "" {
					want = newestRevision
				}
				if l.Revision != want || l.Restarted || !l.Resources || len(l.Tools) != 2 || l.Name != "example" || l.Version != "1.2.3" || l.Instructions != "Ask for cities." {
					t.Errorf("got %+v", l)
				}
				if r := call(t, s, "weather", `{"city":"Oslo"}`); r.Failed || r.Output != "sunny in Oslo" {
					t.Errorf("got %+v", r)
				}
				if r := call(t, s, "weather", `{"town":"Oslo"}`); !r.Failed || !strings.Contains(r.Output, "city") {
					t.Errorf("got %+v", r)
				}
				if r := call(t, s, "fail", `{"city":"Oslo"}`); !r.Failed || r.Output != "no such city" {
					t.Errorf("got %+v", r)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				if s.Ended() == nil {
					t.Error("it has not ended")
				}
			})
		}
	}
}

// TestVariableOfTheLibrary starts a program with a value at which the library panics.
func TestVariableOfTheLibrary(t *testing.T) {
	t.Setenv("MCPGODEBUG", "not of its form")
	s := open(t, Server{Start: child(t, "sdk")})
	if len(s.List().Tools) != 2 {
		t.Errorf("got %+v", s.List())
	}
}

func TestFlood(t *testing.T) {
	t.Parallel()
	_, err := Open(t.Context(), Server{Name: "test", Tools: []string{AllTools}, Start: child(t, "flood"), StartTimeout: time.Hour})
	wantError(t, err, ReasonProtocol, "more than 16 MiB")
}

func wantError(t *testing.T, err error, reason Reason, words string) {
	t.Helper()
	e, ok := err.(*Error)
	if !ok || e.Reason != reason || !strings.Contains(e.Words, words) {
		t.Errorf("got %v, want %s with %q", err, reason, words)
	}
}
