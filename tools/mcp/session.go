package mcp

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Session is a session with a server. It is safe for concurrent use.
type Session struct {
	server Server
	list   List

	link     *connection
	declined atomic.Int64 // number of declined questions to a person
	watching sync.WaitGroup

	observeLock      sync.Mutex // held while Observe is called
	imageLock        sync.Mutex // held while images are decoded, since each may need much memory
	connected        atomic.Bool
	closing          atomic.Bool
	reportChangeOnce sync.Once
	endOnce          sync.Once
	lifetime         context.Context // done when the session has ended; its cause is the reason
	endLifetime      context.CancelCauseFunc

	closeOnce sync.Once
	closeErr  error
}

const (
	defaultStartTimeout = time.Minute
	defaultCallTimeout  = 2 * time.Minute
	// closeTime is the time for a session to end by the protocol's rules.
	closeTime = 2 * time.Second
)

// Names of the protocol.
const (
	methodToolsChanged = "notifications/tools/list_changed"
	methodElicit       = "elicitation/create"
	methodSample       = "sampling/createMessage"
	methodRoots        = "roots/list"
)

// Open starts or contacts a server and requests its tools. The error is an *Error; the server is then stopped.
func Open(ctx context.Context, server Server) (*Session, error) {
	server.StartTimeout = cmp.Or(server.StartTimeout, defaultStartTimeout)
	server.CallTimeout = cmp.Or(server.CallTimeout, defaultCallTimeout)
	ctx, cancel := context.WithTimeout(ctx, server.StartTimeout)
	defer cancel()
	s := &Session{server: server}
	s.lifetime, s.endLifetime = context.WithCancelCause(context.Background())
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	s.watching.Go(s.awaitEnd)
	if err := s.readDescription(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// List returns the server's description as it was when the session was opened.
func (s *Session) List() List { return s.list }

// Ended returns the reason why the session has ended, or nil while the server answers calls.
func (s *Session) Ended() error {
	return cmp.Or(context.Cause(s.lifetime), s.link.lossReason())
}

// awaitEnd waits for the end of the library's session, and then ends this one.
func (s *Session) awaitEnd() {
	err := s.link.session.Wait()
	s.end(cmp.Or(s.link.lossReason(), err, errClosed))
}

// end marks the session as ended for a reason, and reports that unless Close has been called. Later calls do
// nothing.
func (s *Session) end(reason error) {
	s.endOnce.Do(func() {
		s.endLifetime(reason)
		if !s.closing.Load() {
			s.observe(Ended)
		}
	})
}

// toolsChanged passes the notice ToolsChanged to Observe, once in a session. The session keeps its tools.
func (s *Session) toolsChanged() {
	s.reportChangeOnce.Do(func() { s.observe(ToolsChanged) })
}

// observe passes a notice to the server's Observe function.
func (s *Session) observe(n Notice) {
	if s.server.Observe == nil {
		return
	}
	s.observeLock.Lock()
	defer s.observeLock.Unlock()
	s.server.Observe(n)
}

// Close ends the session and its server, and waits a few seconds for both.
func (s *Session) Close() error {
	s.closeOnce.Do(func() {
		s.closing.Store(true)
		s.closeErr = s.link.end()
		s.watching.Wait()
	})
	return s.closeErr
}

// client returns a client of the library. It offers the server no capabilities.
func (s *Session) client() *sdk.Client {
	client := sdk.NewClient(&sdk.Implementation{Name: "agent-ci", Version: "1"}, &sdk.ClientOptions{
		Capabilities:   &sdk.ClientCapabilities{}, // nil would offer roots
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
		Logger:         slog.New(slog.DiscardHandler),
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			s.toolsChanged()
		},
	})
	client.AddReceivingMiddleware(s.refuseRequests)
	return client
}

// refuseRequests returns a handler that refuses a server's requests for a model's answer or for folders. It
// declines questions to people, since nobody can answer. It passes all other requests to next.
func (s *Session) refuseRequests(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, request sdk.Request) (sdk.Result, error) {
		switch method {
		case methodElicit:
			s.declined.Add(1)
			return &sdk.ElicitResult{Action: "decline"}, nil
		case methodSample, methodRoots:
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: method + " is not offered"}
		}
		return next(ctx, method, request)
	}
}

// connection is a library session with its transport.
type connection struct {
	session          *sdk.ClientSession
	stop             func() error  // stops the server, or all requests to it
	lossReason       func() error  // why the connection failed; nil if it did not, or only the library knows
	firstInvalidLine func() string // the beginning of the first line that is no message, or ""
}

// end ends the session by the protocol's rules for up to closeTime, and then stops the server.
func (l *connection) end() error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.session.Close()
	}()
	select {
	case <-done:
	case <-time.After(closeTime):
	}
	err := l.stop()
	select {
	case <-done:
	case <-time.After(closeTime): // the library itself hangs
		err = errors.Join(err, errors.New("the session did not end"))
	}
	return err
}
