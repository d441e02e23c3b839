// Command toolserver is an MCP server for tests: over its standard streams, or at an address.
// Its flags make it one that a run has to cope with.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var (
	token    = flag.String("token", "", "at an address: let in who has it")
	at       = flag.String("http", "", "serve at this address, and print which it is")
	like     = flag.String("like", "", "silent, exit, flood: what it does instead of serving")
	without  = flag.String("without", "", "tools that it does not have, with commas between")
	extra    = flag.String("extra", "", "a file: with it there, echo takes another argument")
	leave    = flag.String("leave", "", "leave a grandchild that holds this file open")
	noise    = flag.Int("noise", 0, "KiB to write to standard error at the start")
	odd      = flag.Bool("odd", false, "have the schema of echo say what is not known in Go")
	schema   = flag.String("schema", "", "the schema of echo, as it is listed")
	resource = flag.Bool("resources", false, "have a resource")
)

func main() {
	flag.Parse()
	if flag.Arg(0) == "hold" { // a grandchild
		time.Sleep(time.Hour)
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	fmt.Fprintln(os.Stderr, "toolserver says", os.Getenv("TOOLSERVER_SECRET"))
	line := strings.Repeat("noise ", 170) + "\n"
	for range *noise {
		fmt.Fprint(os.Stderr, line)
	}
	switch *like {
	case "silent":
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	case "exit":
		return errors.New("it does not want to")
	case "flood":
		return flood()
	}
	if *leave != "" {
		if err := leaveBehind(); err != nil {
			return err
		}
	}
	if *at != "" {
		return serve()
	}
	return newServer().Run(context.Background(), &mcp.StdioTransport{})
}

// flood writes 200 MB in one line.
func flood() error {
	out := bufio.NewWriter(os.Stdout)
	for range 200 << 10 {
		if _, err := out.WriteString(strings.Repeat("x", 1<<10)); err != nil {
			return err
		}
	}
	return out.Flush()
}

// leaveBehind starts a process in a session of its own that holds a file open.
func leaveBehind() error {
	held, err := os.Open(*leave)
	if err != nil {
		return err
	}
	child := exec.Command(os.Args[0], "hold")
	child.ExtraFiles, child.SysProcAttr = []*os.File{held}, &syscall.SysProcAttr{Setsid: true}
	return child.Start()
}

func serve() error {
	listener, err := net.Listen("tcp", *at)
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return newServer() }, nil)
	return http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if *token != "" && r.Header.Get("Authorization") != "Bearer "+*token {
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
}

type text struct {
	Text string `json:"text"`
	More string `json:"more,omitempty"`
}

// oddEcho is echo without the library's own check of arguments.
func oddEcho(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var a text
	err := json.Unmarshal(r.Params.Arguments, &a)
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: a.Text}}}, err
}

type otherText struct {
	Other string `json:"other"`
}

func newServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "toolserver", Version: "1.2.3"}, nil)
	_, err := os.Stat(*extra)
	if changed := *extra != "" && err == nil; changed {
		add(s, "echo", "Says it again, otherwise.", func(a otherText) (string, error) { return a.Other, nil })
	} else {
		add(s, "echo", "Says it again.", func(a text) (string, error) { return a.Text, nil })
	}
	if *odd {
		s.RemoveTools("echo")
		s.AddTool(&mcp.Tool{Name: "echo", InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string","pattern":"^(?!x)"}},"required":["text"]}`)}, oddEcho)
	}
	add(s, "variable", "Says a variable.", func(a text) (string, error) { return a.Text + "=" + os.Getenv(a.Text), nil })
	add(s, "folder", "Says where it is.", func(text) (string, error) { return os.Getwd() })
	add(s, "read", "Reads a file.", func(a text) (string, error) {
		raw, err := os.ReadFile(a.Text)
		return string(raw), err
	})
	add(s, "write", "Writes a file.", func(a text) (string, error) { return "written", os.WriteFile(a.Text, []byte(a.More), 0o644) })
	add(s, "reach", "Connects to an address.", func(a text) (string, error) {
		conn, err := net.DialTimeout("tcp", a.Text, 2*time.Second)
		if err != nil {
			return "", err
		}
		return "reached", conn.Close()
	})
	add(s, "fetch", "Fetches a page.", func(a text) (string, error) {
		answer, err := http.Get(a.Text)
		if err != nil {
			return "", err
		}
		return answer.Status, answer.Body.Close()
	})
	add(s, "end", "Ends the server.", func(text) (string, error) {
		os.Exit(3)
		return "", nil
	})
	add(s, "hang", "Never answers.", func(text) (string, error) { select {} })
	mcp.AddTool(s, &mcp.Tool{Name: "change", Description: "Has other tools from now on."}, func(context.Context, *mcp.CallToolRequest, text) (*mcp.CallToolResult, any, error) {
		add(s, "another", "Came later.", func(a text) (string, error) { return a.Text, nil })
		time.Sleep(100 * time.Millisecond) // the library tells of it a moment later
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "changed"}}}, nil, nil
	})
	if *schema != "" {
		s.AddReceivingMiddleware(listSchema)
	}
	s.RemoveTools(slices.DeleteFunc(strings.Split(*without, ","), func(name string) bool { return name == "" })...)
	if *resource {
		s.AddResource(&mcp.Resource{URI: "test://greeting", Name: "greeting"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "test://greeting", Text: "hello from a resource"}}}, nil
		})
	}
	return s
}

// listSchema lists echo with the schema of the flag.
func listSchema(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, r)
		if list, is := result.(*mcp.ListToolsResult); is && err == nil {
			for i, tool := range list.Tools {
				if tool.Name == "echo" {
					other := *tool
					other.InputSchema = json.RawMessage(*schema)
					list.Tools[i] = &other
				}
			}
		}
		return result, err
	}
}

func add[T any](s *mcp.Server, name, about string, do func(T) (string, error)) {
	mcp.AddTool(s, &mcp.Tool{Name: name, Description: about}, func(_ context.Context, _ *mcp.CallToolRequest, a T) (*mcp.CallToolResult, any, error) {
		said, err := do(a)
		if err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: said}}}, nil, nil
	})
}
