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
	"github.com/agent-ci/agent-ci/runner/record/transcript/eventlog"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/mcp"
)

// server is one MCP server of a run.
type server struct {
	*Options
	job.MCPServer
	name         string
	agentSandbox *sandbox.Sandbox // the agent's sandbox; the server starts beside it
	firstList    *mcp.List        // the first list of tools; nil before the server has sent one
	starting     sync.Mutex       // held while the server restarts

	mu sync.Mutex
	serverState
}

// serverState is the part of a server that changes while it is in use. server.mu guards it.
type serverState struct {
	startDuration time.Duration // how long its last start took
	log           string        // log file of its last process, relative to the run directory
	session       *mcp.Session
	endedSession  *mcp.Session // the last session that the server ended itself
	endCount      int          // how many sessions the server ended itself
	lostReason    string       // why it is lost for the rest of the run, or ""
	lossCause     error        // error behind lostReason, if the server was lost while in use
	changed       bool         // the server reported that its tools changed
	closing       bool         // the runner is closing it, so its end is no news
	unreported    bool         // nothing about it is recorded (DescribeAll)
	recorded      string       // its last recorded state
}

// livesWithRun reports whether the server can run until the end of the run, rather than of the agent's sandbox. It
// cannot if it uses the workspace, or if sandboxes cannot exist side by side.
func (s *server) livesWithRun() bool {
	return s.URL != "" || s.Workspace == "none" && s.Sandboxes.AllowsConcurrent()
}

// liveSession returns the server's session, or nil if it does not run.
func (s *server) liveSession() *mcp.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.session
}

// lossReason returns why the server is lost for the rest of the run, or "".
func (s *server) lossReason() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lostReason
}

// startForAttempt starts the server for an attempt of the agent.
func (s *server) startForAttempt(ctx context.Context) error {
	s.mu.Lock()
	s.closing = false
	s.mu.Unlock()
	return s.startSession(ctx)
}

// startSession starts the server and opens a session. It returns an error if the tools differ from the first list.
func (s *server) startSession(ctx context.Context) error {
	defer s.Record.BeginStep("", "start of the server "+s.name)()
	startedAt := time.Now()
	settings, err := s.mcpServer()
	if err != nil {
		return err
	}
	session, err := mcp.Open(ctx, settings)
	s.mu.Lock()
	s.startDuration = time.Since(startedAt)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	list, err := s.redactList(session.List())
	if err == nil {
		err = s.requireSameTools(list)
	}
	if err != nil {
		_ = session.Close() // err is the cause
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.firstList == nil {
		s.firstList = &list
	}
	s.session = session
	return nil
}

// requireSameTools returns an error if the tools in list differ from the first list. At the first start there is none.
func (s *server) requireSameTools(list mcp.List) error {
	if s.firstList == nil {
		return nil
	}
	difference := s.firstList.Changed(list)
	if difference == "" {
		return nil
	}
	return outcome.Stopf(outcome.ExtensionFailed, "mcp_changed",
		"The server %s (mcp_servers) has other tools than when the run began: %s; restore its version and resume the run, or start a new run.", s.name, s.Record.Redact(difference))
}

// redactList returns the list with secrets replaced in all its texts.
func (s *server) redactList(list mcp.List) (redacted mcp.List, err error) {
	raw, err := json.Marshal(list)
	if err == nil {
		raw, err = eventlog.RedactJSON(raw, s.Record.Redact)
	}
	if err == nil {
		err = json.Unmarshal(raw, &redacted)
	}
	if err != nil {
		return redacted, fmt.Errorf("read the tools of the server %s: %w", s.name, err)
	}
	return redacted, nil
}

// mcpServer returns the server's settings for package mcp.
func (srv *server) mcpServer() (mcp.Server, error) {
	s := mcp.Server{
		Name: srv.name, Tools: srv.Tools, Deny: srv.Deny, StartTimeout: time.Duration(srv.StartTimeout),
		CallTimeout: time.Duration(srv.ToolTimeout), Observe: srv.recordNotice,
	}
	if srv.URL == "" {
		s.Start = srv.start
		return s, nil
	}
	token, _ := srv.Environ.Key(srv.BearerTokenEnv) // settings.CheckServerSecrets reports the error before the run
	client, err := mcp.NewClient(mcp.Remote{URL: srv.URL, Headers: srv.Headers, Bearer: token})
	if err != nil {
		return s, outcome.Stopf(outcome.InvalidInput, "mcp_url", "The server %s can't be reached at its address: %s.", srv.name, outcome.WithoutFullStop(err)).Because(err)
	}
	s.URL, s.Client = srv.URL, client
	return s, nil
}

// settleStart records the result of a start. failed is the error of the start, or nil. If the server is required or
// the job is wrong, settleStart returns an error that ends the run. Otherwise it warns, and the run continues without
// the server.
func (s *server) settleStart(failed error) error {
	if failed == nil {
		return s.recordRestart()
	}
	stop := stopOf(s.name, failed)
	reason := s.Record.Redact(strings.TrimSuffix(stop.Message, ".") + "." + s.hint(stop) + s.logSentence())
	if err := s.recordStatus(transcript.MCPServer{State: transcript.MCPFailed, Reason: reason}); err != nil {
		return err
	}
	if s.Required || stop.Outcome == outcome.InvalidInput {
		stop.Message = reason
		return stop
	}
	s.mu.Lock()
	s.lostReason = reason
	s.mu.Unlock()
	s.Record.Warn("mcp_server", "The run continues without the server %s, which is not required. %s", s.name, reason)
	return nil
}

// hint returns advice for a failed start, or "".
func (s *server) hint(stop *outcome.Stop) string {
	if stop.Reason != string(mcp.ReasonStart) {
		return ""
	}
	return s.registryHint()
}

// recordStatus records event after adding the server's name, command, log and start duration.
func (s *server) recordStatus(event transcript.MCPServer) error {
	s.mu.Lock()
	event.Name, event.Command, event.Log, event.Seconds = s.name, s.Command, s.log, s.startDuration.Seconds()
	list := s.firstList
	if event.State != transcript.MCPChanged { // a server with changed tools is still ready
		s.recorded = event.State
	}
	s.mu.Unlock()
	if address, err := url.Parse(s.URL); err == nil {
		event.Host = address.Host
	}
	if list != nil {
		event.Revision, event.Server, event.Version = list.Revision, list.Name, list.Version
	}
	return s.Record.Append(event)
}

// recordReady saves the server's list of tools in the run directory, and records the tools offered to the
// model. It does nothing for a server that does not run.
func (s *server) recordReady(offered []mcp.Offered) error {
	if s.liveSession() == nil {
		return nil
	}
	digest, err := s.Record.WriteRecorded(s.listFile(), s.firstList)
	if err != nil {
		return err
	}
	event := transcript.MCPServer{State: transcript.MCPReady, File: s.listFile(), SHA256: digest}
	for _, tool := range offered {
		if tool.Server == s.name {
			event.Tools = append(event.Tools, transcript.MCPTool{Name: tool.Spec.Name, ServerName: tool.Tool, SHA256: tool.SHA256, UncheckedSchema: tool.Unchecked})
		}
	}
	return s.recordStatus(event)
}

// recordRestart records that a server is ready again, if its end was recorded.
func (s *server) recordRestart() error {
	s.mu.Lock()
	ended := s.recorded == transcript.MCPEnded
	s.mu.Unlock()
	if !ended {
		return nil
	}
	return s.recordStatus(transcript.MCPServer{State: transcript.MCPReady, Reason: "it was started again"})
}

// recordNotice records a notice of the server: changed tools, or its exit.
func (s *server) recordNotice(notice mcp.Notice) {
	s.mu.Lock()
	ignore := s.closing || s.unreported
	isFirstChange := notice == mcp.ToolsChanged && !s.changed
	if notice == mcp.ToolsChanged {
		s.changed = true
	}
	s.mu.Unlock()
	switch {
	case ignore: // it is expected to end, or nothing is recorded
	case isFirstChange:
		_ = s.recordStatus(transcript.MCPServer{State: transcript.MCPChanged, Reason: "it says that its tools are others now; the run goes on with those that it had"}) // the log reports its error at the end
		s.Record.Warn("mcp_changed", "The server %s announced other tools; the run kept those from the start.", s.name)
	case notice == mcp.Ended:
		_ = s.checkEnded()
	}
}

// checkEnded returns why the current session has ended, or nil while it is open. It counts and records the end of
// each session once.
func (s *server) checkEnded() (ended error) {
	s.mu.Lock()
	session := s.session
	if session != nil {
		ended = session.Ended()
	}
	isNewEnd := ended != nil && session != s.endedSession && !s.unreported
	if isNewEnd {
		s.endedSession = session
		s.endCount++
	}
	s.mu.Unlock()
	if isNewEnd {
		reason := s.Record.Redact(outcome.WithoutFullStop(ended))
		_ = s.recordStatus(transcript.MCPServer{State: transcript.MCPEnded, Reason: reason}) // the log reports its error at the end
		s.Record.Warn("mcp_ended", "The server %s ended while it was in use: %s.%s", s.name, strings.TrimSuffix(reason, "."), s.logSentence())
	}
	return ended
}

// logSentence returns a sentence that names the server's log file and quotes its last lines, or "".
func (s *server) logSentence() string {
	switch log, lines := s.lastLines(); {
	case log == "":
		return ""
	case lines == "":
		return " See " + log + "."
	default:
		return " See " + log + ", whose last lines are: " + lines + "."
	}
}

// lastLines returns the name of the server's log file, or "", and the log's last lines, joined and without a final
// full stop.
func (s *server) lastLines() (log, lines string) {
	s.mu.Lock()
	log = s.log
	s.mu.Unlock()
	if log == "" {
		return "", ""
	}
	text, err := s.Record.LastLines(log)
	if err != nil {
		return log, ""
	}
	const maxLines = 5
	all := strings.Split(text, "\n")
	return log, strings.TrimSuffix(strings.Join(all[max(0, len(all)-maxLines):], " / "), ".")
}

// tool returns the callable tool for one that the server offers. It counts as mutating, even if the server declares it
// read-only. A call may restart the server.
func (s *server) tool(offered mcp.Offered) tools.Tool {
	return tools.Tool{Spec: offered.Spec, Foreign: true, Mutates: true, Run: func(ctx context.Context, call tools.Call) (tools.Result, error) {
		session, reason := s.sessionForCall(ctx)
		if session == nil {
			return tools.Refuse(reason), context.Cause(ctx)
		}
		return session.Call(ctx, offered.Tool, json.RawMessage(call.Input))
	}}
}

// sessionForCall returns the session for a call. It restarts a server that ended, at most once per run. If there
// is no session, reason tells the model why.
func (s *server) sessionForCall(ctx context.Context) (session *mcp.Session, reason string) {
	s.starting.Lock()
	defer s.starting.Unlock()
	const endedText = " has ended and answers no more. Go on without it. "
	if reason := s.lossReason(); reason != "" {
		return nil, "The server " + s.name + endedText + reason
	}
	ended := s.checkEnded()
	session = s.liveSession()
	switch {
	case session == nil:
		return nil, "The server " + s.name + " is not there. Go on without it."
	case ended == nil:
		return session, ""
	}
	if err := s.restart(ctx, session, ended); err != nil {
		if ctx.Err() != nil {
			return nil, "The server " + s.name + " was not started again: the run was cancelled."
		}
		return nil, "The server " + s.name + endedText + s.markLost(err)
	}
	return s.liveSession(), ""
}

// restart restarts the server after session has ended with the error ended. It returns an error if the server was
// restarted before.
func (s *server) restart(ctx context.Context, session *mcp.Session, ended error) error {
	if err := s.requireRestartLeft(ended); err != nil {
		return err
	}
	_ = session.Close() // it has ended
	s.mu.Lock()
	s.session = nil
	s.mu.Unlock()
	if err := s.startSession(ctx); err != nil {
		return err
	}
	return s.recordRestart()
}

// requireRestartLeft returns an error if the server has ended twice, and so has used up its restart.
func (s *server) requireRestartLeft(ended error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.endCount < 2 {
		return nil
	}
	return fmt.Errorf("it was started again once already, and ended again: %w", ended)
}

// markLost marks the server as lost because of err, and returns the reason as text.
func (s *server) markLost(err error) string {
	reason := s.Record.Redact(outcome.Sentence(outcome.MessageOf(err)) + ".")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lostReason, s.lossCause = reason, err
	return reason
}

// stopIfLost returns the error that ends the run if the server is required and lost for the rest of the run, or nil.
// It also marks a server as lost that has ended twice, because no call may have noticed that yet.
func (s *server) stopIfLost() error {
	if !s.Required {
		return nil
	}
	if ended := s.checkEnded(); ended != nil && s.lossReason() == "" {
		if err := s.requireRestartLeft(ended); err != nil {
			s.markLost(err)
		}
	}
	s.mu.Lock()
	reason, cause := s.lostReason, s.lossCause
	s.mu.Unlock()
	if reason == "" {
		return nil
	}
	if stop, isStop := errors.AsType[*outcome.Stop](cause); isStop && stop.Reason == "mcp_changed" {
		return stop
	}
	return outcome.Stopf(outcome.ExtensionFailed, "mcp_ended",
		"The server %s (mcp_servers) ended while it was in use, and could not be started again. %s.%s Fix it and resume the run, or set required: false.", s.name, strings.TrimSuffix(reason, "."), s.logSentence())
}

// close ends the session and the server.
func (s *server) close() error {
	_ = s.checkEnded() // records the end of a server that exited before
	s.mu.Lock()
	session := s.session
	s.session, s.closing = nil, true
	s.mu.Unlock()
	if session == nil {
		return nil
	}
	if err := session.Close(); err != nil {
		return fmt.Errorf("end the server %s: %w", s.name, err)
	}
	return nil
}
