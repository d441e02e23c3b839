package extensions

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/toolstest"
)

// atAddress are the servers of a run that has one, at the address of the handler, and the states
// of it that were recorded.
func atAddress(t *testing.T, handler http.Handler) (*Servers, states) {
	t.Helper()
	web := httptest.NewServer(handler)
	t.Cleanup(web.Close)
	told := make(states, 20)
	rec := record.New("run-1", nil)
	must.Do(t, rec.Make(filepath.Join(t.TempDir(), "run"), told.take))
	t.Cleanup(rec.Close)
	servers := New(Options{Record: rec, Job: &job.Job{MCPServers: map[string]job.MCPServer{"a": {
		URL: web.URL, Tools: []string{"*"}, Required: true, StartTimeout: job.Duration(time.Minute), ToolTimeout: job.Duration(time.Minute),
	}}}})
	t.Cleanup(func() {
		must.Is(t, nil, servers.Close())
	})
	must.Do(t, servers.Start(t.Context(), nil))
	return servers, told
}

// states of the server, one after the other.
type states chan string

func (s states) take(_ *transcript.View, e transcript.Event) {
	if d, isServer := e.Content.(transcript.MCPServer); isServer {
		s <- d.State
	}
}

func (s states) want(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for range want {
		got = append(got, <-s)
	}
	if slices.Sort(got); !slices.Equal(got, want) || len(s) > 0 {
		t.Errorf("recorded %s, and %d more", got, len(s))
	}
}

func say(t *testing.T, servers *Servers) tools.Result {
	t.Helper()
	return must.Get(servers.Tools()[0].Run(t.Context(), tools.Call{Name: "mcp__a__say", Input: "{}"}))(t)
}

// speaking is a server whose sessions are of its own making; before is asked first.
func speaking(before func(http.ResponseWriter, *http.Request) bool) http.Handler {
	server := sdk.NewServer(&sdk.Implementation{Name: "a", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "say"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "said"}}}, nil, nil
	})
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: true})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before(w, r) {
			handler.ServeHTTP(w, r)
		}
	})
}

// TestRestartsLostHTTPServer has it be gone for one call, and then for good.
func TestRestartsLostHTTPServer(t *testing.T) {
	var gone atomic.Bool
	servers, told := atAddress(t, speaking(func(http.ResponseWriter, *http.Request) bool {
		if gone.Load() {
			panic(http.ErrAbortHandler)
		}
		return true
	}))
	gone.Store(true)
	must.Contain(t, toolstest.Failure(t, say(t, servers)), "has ended")
	must.Do(t, servers.StopReason(), "it is not started again")
	gone.Store(false)
	must.Same(t, "said", say(t, servers).Output)
	gone.Store(true)
	say(t, servers)
	must.Fail(t, "mcp_ended", servers.StopReason(), "the run goes on")
	told.want(t, "ended", "ended", "ready", "ready")
}

// TestNotesToolChangesDuringStart has it say that it has other tools as soon as it has listed them:
// what is recorded of that and what is learned of the server meet.
func TestNotesToolChangesDuringStart(t *testing.T) {
	answers := map[string]string{
		"server/discover": `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}`,
		"tools/list":      `{"tools":[{"name":"say","inputSchema":{"type":"object"}}]}`,
		"tools/call":      `{"content":[{"type":"text","text":"said"}]}`,
	}
	servers, told := atAddress(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if json.NewDecoder(r.Body).Decode(&asked) != nil {
			return
		}
		if asked.Method != "subscriptions/listen" {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, asked.ID, answers[asked.Method])
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		of := `{"_meta":{"io.modelcontextprotocol/subscriptionId":` + string(asked.ID) + `},"notifications":{"toolsListChanged":true}}`
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":%s}\n\n", of)
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\",\"params\":%s}\n\n", of)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	must.Same(t, "said", say(t, servers).Output)
	told.want(t, "changed", "ready")
}
