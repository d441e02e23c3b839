package extensions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/mcp"
)

// server is one server of a run.
type server struct {
	*Options
	job.MCPServer
	name   string
	box    *sandbox.Sandbox // the agent's, beside which it is started
	frozen *mcp.List        // what it said first; nil while nobody asked
	told   bool             // that it is ready, with its tools

	mu       sync.Mutex
	took     time.Duration // until it was ready
	log      string        // of its last process, below the run directory
	session  *mcp.Session
	over     *mcp.Session // the last one that ended by itself
	ends     int          // how many did, since the run began
	broken   string       // why it answers no calls for good, and is not started again; empty while it does
	cause    error        // of broken, where that came while it was in use
	changed  bool         // it was told that its tools are others now
	closing  bool
	quiet    bool                 // nothing of it is told
	known    transcript.MCPServer // of what was told
	starting sync.Mutex           // held by who starts it again
}

// lasts reports whether the server lives as long as the run, not the agent's sandbox. Without
// namespaces, ending the sandbox may kill other processes too.
func (one *server) lasts() bool {
	return one.URL != "" || one.Workspace == "none" && one.Sandboxes.Apart()
}

func (one *server) live() bool { return one.current() != nil }

func (one *server) current() *mcp.Session {
	one.mu.Lock()
	defer one.mu.Unlock()
	return one.session
}

// gone says why it answers no calls for good; empty while it does.
func (one *server) gone() string {
	one.mu.Lock()
	defer one.mu.Unlock()
	return one.broken
}

// begin starts the server, and compares its tools with those that it had.
func (one *server) begin(ctx context.Context) error {
	one.mu.Lock()
	one.closing = false
	one.mu.Unlock()
	return one.open(ctx)
}

// open opens a session with the server.
func (one *server) open(ctx context.Context) error {
	defer one.Record.Begins("", "start of the server "+one.name)()
	began := time.Now()
	asked, err := one.asked()
	if err != nil {
		return err
	}
	session, err := mcp.Open(ctx, asked)
	one.mu.Lock()
	one.took = time.Since(began)
	one.mu.Unlock()
	if err != nil {
		return err
	}
	list, err := one.redacted(session.List())
	if err == nil && one.frozen != nil {
		err = one.unchanged(list)
	}
	if err != nil {
		_ = session.Close() // the error says more
		return err
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.frozen == nil {
		one.frozen = &list
	}
	one.session = session
	return nil
}

func (one *server) unchanged(list mcp.List) error {
	if words := one.frozen.Changed(list); words != "" {
		return outcome.Stopf(outcome.ExtensionFailed, "mcp_changed",
			"The server %s (mcp_servers) has other tools than when the run began: %s; restore its version and resume the run, or start a new run.", one.name, one.Record.Redact(words))
	}
	return nil
}

// redacted is what a server said of itself without secrets, which no model is told.
func (one *server) redacted(list mcp.List) (clean mcp.List, err error) {
	raw, err := json.Marshal(list)
	if err == nil {
		raw, err = transcript.RedactJSON(raw, one.Record.Redact)
	}
	if err == nil {
		err = json.Unmarshal(raw, &clean)
	}
	if err != nil {
		return clean, fmt.Errorf("read the tools of the server %s: %w", one.name, err)
	}
	return clean, nil
}

// asked is what package mcp is to hold a session with.
func (one *server) asked() (mcp.Server, error) {
	s := mcp.Server{
		Name: one.name, Tools: one.Tools, Deny: one.Deny, StartTimeout: time.Duration(one.StartTimeout),
		CallTimeout: time.Duration(one.ToolTimeout), Defer: one.Defer, Observe: one.observe,
	}
	if one.URL == "" {
		s.Start = one.start
		return s, nil
	}
	token := ""
	if one.BearerTokenEnv != "" {
		token = one.Environ.Get(one.BearerTokenEnv)
	}
	client, err := mcp.NewClient(mcp.Remote{URL: one.URL, Headers: one.Headers, Bearer: token})
	if err != nil {
		return s, outcome.Stopf(outcome.InvalidInput, "mcp_url", "The server %s can't be reached at its address: %s.", one.name, outcome.Trimmed(err)).Because(err)
	}
	s.URL, s.Client = one.URL, client
	return s, nil
}

// judge decides how a failed start affects the run.
func (one *server) judge(failed error) error {
	if failed == nil {
		return one.tellAgain()
	}
	stop := stopOf(one.name, failed)
	why := one.Record.Redact(strings.TrimSuffix(stop.Message, ".") + "." + one.hint(stop) + one.seeLog())
	if err := one.tell(transcript.MCPServer{State: transcript.MCPFailed, Why: why}); err != nil {
		return err
	}
	if one.Required || stop.Outcome == outcome.InvalidInput {
		stop.Message = why
		return stop
	}
	one.mu.Lock()
	one.broken = why
	one.mu.Unlock()
	one.Record.Warn("mcp_server", "The run continues without the server %s, which is not required. %s", one.name, why)
	return nil
}

// hint returns advice for a failed start; "" for none.
func (one *server) hint(stop *outcome.Stop) string {
	if stop.Reason != string(mcp.ReasonStart) {
		return ""
	}
	return one.registryHint()
}

// tell records the server's status.
func (one *server) tell(event transcript.MCPServer) error {
	one.mu.Lock()
	event.Name, event.Command, event.Log, event.Seconds = one.name, one.Command, one.log, one.took.Seconds()
	list := one.frozen
	one.mu.Unlock()
	if at, err := url.Parse(one.URL); err == nil {
		event.Host = at.Host
	}
	if list != nil {
		event.Revision, event.Server, event.Version = list.Revision, list.Name, list.Version
	}
	one.mu.Lock()
	one.known = one.known.Then(event)
	one.mu.Unlock()
	return one.Record.Append(transcript.TypeMCPServer, event)
}

// tellReady saves the server's list of tools and records the offered ones.
func (one *server) tellReady(offered []mcp.Offered) error {
	if one.told || !one.live() {
		return nil
	}
	one.told = true
	raw, err := json.MarshalIndent(one.frozen, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the tools of the server %s: %w", one.name, err)
	}
	raw = append(raw, '\n')
	if _, err := one.Record.MakeFolder(folder); err != nil {
		return err
	}
	if err := one.Record.Write(one.listFile(), raw); err != nil {
		return err
	}
	event := transcript.MCPServer{State: transcript.MCPReady, File: one.listFile(), SHA256: digestOf(raw)}
	for _, tool := range offered {
		if tool.Server == one.name {
			event.Tools = append(event.Tools, transcript.MCPTool{Name: tool.Spec.Name, Tool: tool.Tool, SHA256: tool.SHA256, Unchecked: tool.Unchecked})
		}
	}
	return one.tell(event)
}

// tellAgain records the return of an ended server.
func (one *server) tellAgain() error {
	one.mu.Lock()
	ended := one.known.State == transcript.MCPEnded
	one.mu.Unlock()
	if !ended {
		return nil
	}
	return one.tell(transcript.MCPServer{State: transcript.MCPReady, Why: "it was started again"})
}

// observe records a server's unrequested event.
func (one *server) observe(notice mcp.Notice) {
	one.mu.Lock()
	first, closing := !one.changed, one.closing || one.quiet
	if notice.Kind == mcp.ToolsChanged {
		one.changed = true
	}
	one.mu.Unlock()
	switch {
	case closing:
	case notice.Kind == mcp.ToolsChanged && first:
		_ = one.tell(transcript.MCPServer{State: transcript.MCPChanged, Why: "it says that its tools are others now; the run goes on with those that it had"}) // a log that fails is told at the end
		one.Record.Warn("mcp_changed", "The server %s announced other tools; the run kept those from the start.", one.name)
	case notice.Kind == mcp.Ended:
		_ = one.ended()
	}
}

// ended returns why the current session has ended; nil while open. It counts and records each end
// once.
func (one *server) ended() error {
	one.mu.Lock()
	session, first := one.session, false
	var why error
	if session != nil {
		why = session.Ended()
	}
	if why != nil && session != one.over && !one.quiet {
		one.over, first = session, true
		one.ends++
	}
	one.mu.Unlock()
	if first {
		words := one.Record.Redact(outcome.Trimmed(why))
		_ = one.tell(transcript.MCPServer{State: transcript.MCPEnded, Why: words}) // a log that fails is told at the end
		one.Record.Warn("mcp_ended", "The server %s ended while it was in use: %s.%s", one.name, strings.TrimSuffix(words, "."), one.seeLog())
	}
	return why
}

func (one *server) seeLog() string {
	one.mu.Lock()
	log := one.log
	one.mu.Unlock()
	if log == "" {
		return ""
	}
	if lines := one.lastLines(); lines != "" {
		return " See " + log + ", whose last lines are: " + lines + "."
	}
	return " See " + log + "."
}

// lastLines are those of its log, in one line and without a full stop; empty for none.
func (one *server) lastLines() string {
	one.mu.Lock()
	log := one.log
	one.mu.Unlock()
	lines, err := one.Record.LastLines(log)
	if log == "" || err != nil || lines == "" {
		return ""
	}
	const most = 5
	last := strings.Split(lines, "\n")
	return strings.TrimSuffix(strings.Join(last[max(0, len(last)-most):], " / "), ".")
}

// tool answers calls of a tool of the server.
func (one *server) tool(offered mcp.Offered) tools.Tool {
	tool := tools.Tool{Spec: offered.Spec, Foreign: true, Mutates: true}
	tool.Run = func(ctx context.Context, call tools.Call) (tools.Result, error) {
		session, why := one.answering(ctx)
		if session == nil {
			return tools.Refuse(why), context.Cause(ctx)
		}
		return session.Tool(offered).Run(ctx, call)
	}
	return tool
}

// answering returns the session for a call. An ended server restarts once per run. Without a
// session, why explains to the model.
func (one *server) answering(ctx context.Context) (session *mcp.Session, why string) {
	one.starting.Lock()
	defer one.starting.Unlock()
	const over = " has ended and answers no more. Go on without it. "
	if why := one.gone(); why != "" {
		return nil, "The server " + one.name + over + why
	}
	ended := one.ended()
	session = one.current()
	switch {
	case session == nil:
		return nil, "The server " + one.name + " is not there. Go on without it."
	case ended == nil:
		return session, ""
	}
	if err := one.again(ctx, session, ended); err != nil {
		if ctx.Err() != nil {
			return nil, "The server " + one.name + " was not started again: the run was cancelled."
		}
		return nil, "The server " + one.name + over + one.giveUp(err)
	}
	return one.current(), ""
}

// again restarts the server after its session has ended.
func (one *server) again(ctx context.Context, session *mcp.Session, ended error) error {
	if err := one.twice(ended); err != nil {
		return err
	}
	_ = session.Close() // it has ended
	one.mu.Lock()
	one.session = nil
	one.mu.Unlock()
	if err := one.open(ctx); err != nil {
		return err
	}
	return one.tellAgain()
}

// twice returns an error once the server has used up its restart.
func (one *server) twice(ended error) error {
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.ends < 2 {
		return nil
	}
	return fmt.Errorf("it was started again once already, and ended again: %w", ended)
}

// giveUp marks the server as lost and returns the reason.
func (one *server) giveUp(err error) string {
	why := one.Record.Redact(outcome.Sentence(outcome.Said(err)) + ".")
	one.mu.Lock()
	defer one.mu.Unlock()
	one.broken, one.cause = why, err
	return why
}

// halted ends a run without its required server. A server that ended twice fails before its next
// call.
func (one *server) halted() error {
	if !one.Required {
		return nil
	}
	if ended := one.ended(); ended != nil && one.gone() == "" {
		if err := one.twice(ended); err != nil {
			one.giveUp(err)
		}
	}
	one.mu.Lock()
	broken, cause := one.broken, one.cause
	one.mu.Unlock()
	if broken == "" {
		return nil
	}
	if stop := (*outcome.Stop)(nil); errors.As(cause, &stop) && stop.Reason == "mcp_changed" {
		return stop
	}
	return outcome.Stopf(outcome.ExtensionFailed, "mcp_ended",
		"The server %s (mcp_servers) ended while it was in use, and could not be started again. %s.%s Fix it and resume the run, or set required: false.", one.name, strings.TrimSuffix(broken, "."), one.seeLog())
}

// close ends the session and the server.
func (one *server) close() error {
	_ = one.ended() // what ended by itself is told as that
	one.mu.Lock()
	session := one.session
	one.session, one.closing = nil, true
	one.mu.Unlock()
	if session == nil {
		return nil
	}
	if err := session.Close(); err != nil {
		return fmt.Errorf("end the server %s: %w", one.name, err)
	}
	return nil
}
