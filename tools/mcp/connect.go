package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	_ "github.com/agent-ci/agent-ci/tools/mcp/internal/environment" // before the library reads it
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-ci/agent-ci/policy/reach"
)

const (
	// newestRevision is the revision requested first. If that fails, olderRevision is requested from a
	// new process. The server may choose an even older one.
	newestRevision = "2026-07-28"
	olderRevision  = "2025-11-25"
	// probeTime bounds the wait for an answer to newestRevision, because some servers never answer.
	probeTime = 5 * time.Second
)

// connect opens the library's session in a revision that the server knows: the newest, or else an older one. It
// restarts the server for each attempt, because some servers exit or hang after an unknown revision.
func (s *Session) connect(ctx context.Context) error {
	probe := min(cmp.Or(s.server.probe, probeTime), s.server.StartTimeout/2)
	probing, cancel := context.WithTimeout(ctx, probe)
	newestErr := s.connectOnce(probing, newestRevision)
	probeTimedOut := probing.Err() != nil
	cancel()
	if newestErr == nil {
		return nil
	}
	if _, isUnstarted := errors.AsType[*startError](newestErr); isUnstarted || ctx.Err() != nil {
		return s.explainFailure(ctx, newestErr)
	}
	err := s.connectOnce(ctx, olderRevision)
	if err == nil {
		s.list.Restarted = true
		return nil
	}
	_, refusesOlder := serverRefusal(err)
	startedSlowly := probeTimedOut && refusesOlder // it may know the newest revision, and was too slow for the first attempt
	if startedSlowly && ctx.Err() == nil {
		err = s.connectOnce(ctx, newestRevision)
	}
	if err != nil {
		return s.explainFailure(ctx, err)
	}
	return nil
}

// connectOnce starts a new process, or contacts the URL, and opens a session in a revision. On success it sets
// s.link. On failure it stops the process.
func (s *Session) connectOnce(ctx context.Context, revision string) error {
	link, transport, err := s.openTransport(ctx)
	if err != nil {
		return &startError{err}
	}
	type outcome struct {
		session *sdk.ClientSession
		err     error
	}
	connected := make(chan outcome, 1)
	go func() {
		session, err := s.client().Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: revision})
		connected <- outcome{session, err}
	}()
	var result outcome
	select {
	case result = <-connected:
	case <-ctx.Done():
		stopErr := link.stop()
		select {
		case result = <-connected: // the session may have opened at the last moment
			if result.err == nil {
				result.session.Close()
			}
		case <-time.After(closeTime):
		}
		return errors.Join(s.silenceAfterTimeout(ctx, link), stopErr)
	}
	if result.err != nil {
		err := cmp.Or(s.silenceAfterTimeout(ctx, link), link.lossReason(), result.err)
		link.stop()
		return err
	}
	link.session = result.session
	s.link = link
	s.connected.Store(true)
	return nil
}

// silenceAfterTimeout returns a *silenceError if ctx has ended, or else nil.
func (s *Session) silenceAfterTimeout(ctx context.Context, l *connection) error {
	if ctx.Err() == nil {
		return nil
	}
	return &silenceError{cause: ctx.Err(), invalidLine: l.firstInvalidLine()}
}

// openTransport starts the server's process, or contacts its URL. It returns the transport, and a connection without
// a session.
func (s *Session) openTransport(ctx context.Context) (*connection, sdk.Transport, error) {
	if s.server.Start == nil {
		connection, transport := s.reachURL()
		return connection, transport, nil
	}
	process, err := s.server.Start(ctx)
	if err != nil {
		return nil, nil, err
	}
	c := newLineConn(process, s.toolsChanged)
	return &connection{stop: c.stop, lossReason: c.failure, firstInvalidLine: c.firstInvalidLine}, c, nil
}

// reachURL returns the transport to the server's URL, and a connection without a session. It sends nothing yet.
func (s *Session) reachURL() (*connection, sdk.Transport) {
	client, bounded := boundedClient(s.server.Client, s.recordLoss)
	transport := &sdk.StreamableClientTransport{
		Endpoint: s.server.URL, HTTPClient: client, MaxEventSize: maxLineBytes,
	}
	return &connection{
		stop: func() error {
			bounded.end()
			s.server.Client.CloseIdleConnections()
			return nil
		},
		lossReason:       func() error { return nil }, // recordLoss ends the session with it
		firstInvalidLine: func() string { return "" },
	}, transport
}

// recordLoss ends the session because a remote server is unreachable or sends too much, and returns true. Before
// the session is open, it does nothing and returns false, since connect returns the error.
func (s *Session) recordLoss(reason error) (endsSession bool) {
	if !s.connected.Load() {
		return false
	}
	s.end(reason)
	return true
}

// codeRejected is the library's code for its own transport errors.
const codeRejected = -32005

// serverRefusal returns the protocol error in err. isRefusal reports whether there is one and it comes from the
// server, not from the library.
func serverRefusal(err error) (refusal *jsonrpc.Error, isRefusal bool) {
	refusal, isRefusal = errors.AsType[*jsonrpc.Error](err)
	return refusal, isRefusal && refusal.Code != codeRejected
}

// startError reports a server that did not start.
type startError struct{ err error }

func (e *startError) Error() string { return e.err.Error() }
func (e *startError) Unwrap() error { return e.err }

// silenceError reports a server that did not answer in time.
type silenceError struct {
	cause       error  // of the context
	invalidLine string // the beginning of the first line that is no message, or ""
}

func (e *silenceError) Error() string { return "it did not answer in time" }
func (e *silenceError) Unwrap() error { return e.cause }

// explainFailure returns the *Error that explains to people why the session could not be opened.
func (s *Session) explainFailure(ctx context.Context, err error) *Error {
	const stderrHint = "look at what it wrote to standard error"
	e := &Error{Reason: ReasonStart, Err: err}
	prefix := fmt.Sprintf("the MCP server %s ", s.server.Name)
	silent, isSilent := errors.AsType[*silenceError](err)
	_, isRefusal := serverRefusal(err)
	request, isUnreachable := errors.AsType[*url.Error](err)
	_, isUnstarted := errors.AsType[*startError](err)
	switch {
	case isUnstarted && errors.Is(err, context.DeadlineExceeded):
		e.Words = prefix + s.describeTimeout()
	case (isUnstarted || isSilent) && errors.Is(context.Cause(ctx), context.Canceled):
		e.Words = prefix + "was not waited for: the run was ended"
	case isUnstarted:
		e.Words = prefix + "could not be started: " + oneLine(err.Error())
	case isSilent && silent.invalidLine != "":
		e.Reason = ReasonProtocol
		e.Words = prefix + fmt.Sprintf("answered nothing that is the protocol within %s; it printed %q: it must write nothing else to standard output", seconds(s.server.StartTimeout), silent.invalidLine)
	case isSilent:
		e.Words = prefix + s.describeTimeout() + "; " + stderrHint
	case errors.Is(err, errClosed):
		e.Words = prefix + "ended before it answered; " + stderrHint
	case isUnreachable:
		e.Words = prefix + "could not be reached: " + oneLine(reach.Explain(request)) + "; check url and the network"
	case s.server.Start == nil && !isRefusal:
		e.Words = prefix + "did not let us in: " + oneLine(err.Error()) + "; check url, bearer_token_env and headers"
	default:
		e.Reason = ReasonProtocol
		e.Words = prefix + "does not keep to the protocol: " + oneLine(err.Error()) + "; " + stderrHint
	}
	return e
}

// describeTimeout returns the predicate of a message: which time the server has exceeded, and the key that extends it.
func (s *Session) describeTimeout() string {
	verb := "start"
	if s.server.Start == nil {
		verb = "answer"
	}
	return fmt.Sprintf("did not %s within %s; set mcp_servers.%s.start_timeout higher if it needs longer, as the first download of a package may", verb, seconds(s.server.StartTimeout), s.server.Name)
}

// seconds formats a duration in seconds, such as "2.5 s".
func seconds(d time.Duration) string { return fmt.Sprintf("%g s", d.Seconds()) }

// protocolError returns an *Error about a server that violates the protocol or a bound.
func (s *Session) protocolError(format string, args ...any) *Error {
	return &Error{
		Reason: ReasonProtocol,
		Words:  fmt.Sprintf("the MCP server %s cannot be used: ", s.server.Name) + fmt.Sprintf(format, args...),
	}
}
