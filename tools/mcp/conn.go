package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds for a server. Exceeding one ends the session.
const (
	maxLineBytes        = 16 << 20 // bytes of one message, which may contain an image
	maxUnrequestedBytes = 32 << 20 // bytes between two answers: notifications, requests and invalid lines
	maxInvalidLineBytes = 200      // stored bytes of an invalid line
	maxServerRequests   = 64       // requests of the server without an answer yet
)

// lineConn is a transport over a process's streams, with one message per line. It is also the
// transport's only connection. The library's IOTransport is unsuitable: it blocks while a server does
// not read, stores all unsolicited messages, and ends at the first invalid line, which many servers
// print when they start.
type lineConn struct {
	process        *Process
	onToolsChanged func() // called for a notification of changed tools
	incoming       chan jsonrpc.Message
	outgoing       chan outgoing
	running        sync.WaitGroup

	lifetime context.Context // done after a failure, which is its cause, or after Close, which is io.EOF
	end      context.CancelCauseFunc
	readDone chan struct{} // closed when read has returned

	mu               sync.Mutex
	unanswered       map[jsonrpc.ID]bool // requests that were written and not answered
	unansweredServer map[jsonrpc.ID]bool // requests of the server that are not answered
	firstInvalid     string              // the beginning of the first invalid line
}

// newLineConn returns a lineConn and starts its reading and writing goroutines.
func newLineConn(process *Process, onToolsChanged func()) *lineConn {
	c := &lineConn{
		process: process, onToolsChanged: onToolsChanged,
		incoming: make(chan jsonrpc.Message), outgoing: make(chan outgoing),
		readDone: make(chan struct{}), unanswered: map[jsonrpc.ID]bool{}, unansweredServer: map[jsonrpc.ID]bool{},
	}
	c.lifetime, c.end = context.WithCancelCause(context.Background())
	c.running.Go(c.read)
	c.running.Go(c.write)
	return c
}

// Connect implements sdk.Transport.
func (c *lineConn) Connect(context.Context) (sdk.Connection, error) { return c, nil }

// exitTimeout is the time for a server to exit after its input is closed.
const exitTimeout = 500 * time.Millisecond

// stop closes the process's input, waits up to exitTimeout for its output to end, and kills it.
func (c *lineConn) stop() error {
	c.Close()
	select {
	case <-c.readDone:
	case <-time.After(exitTimeout):
	}
	err := c.process.End()
	c.process.Output.Close()
	c.running.Wait()
	return err
}

// firstInvalidLine returns the beginning of the first invalid line, or "".
func (c *lineConn) firstInvalidLine() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.firstInvalid
}

// outgoing is a message to write.
type outgoing struct {
	data []byte
	done chan error // receives the result of writing
}

// SessionID implements sdk.Connection. A process has no session id.
func (c *lineConn) SessionID() string { return "" }

// failure returns the error that ended the connection, or nil. Errors after Close are expected.
func (c *lineConn) failure() error {
	if err := context.Cause(c.lifetime); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// Read returns the next message for the library. It returns io.EOF after Close.
func (c *lineConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case message := <-c.incoming:
		return message, nil
	case <-c.lifetime.Done():
		return nil, context.Cause(c.lifetime)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write passes the message to the writing goroutine and waits for the result or the end of ctx. If ctx
// ends while the message is being written, the goroutine still writes all of it. Write itself must not
// block while a server does not read.
func (c *lineConn) Write(ctx context.Context, message jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(message)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	c.trackRequests(message)
	out := outgoing{data: append(toServer(data), '\n'), done: make(chan error, 1)}
	unsent := c.outgoing
	for {
		select {
		case unsent <- out:
			unsent = nil // do not pass the message on again: wait for the result
		case err := <-out.done:
			return c.explainWriteError(ctx, err)
		case <-ctx.Done():
			return ctx.Err()
		case <-c.lifetime.Done(): // no answer would be read
			return cmp.Or(c.failure(), io.ErrClosedPipe)
		}
	}
}

// explainWriteError returns the error of a write to the server's input, which may be nil. Package attached closes the
// input of an exited process just before its output. In this case explainWriteError waits for the end of the output,
// up to closeTime, because that is the better error.
func (c *lineConn) explainWriteError(ctx context.Context, err error) error {
	inputClosed := errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed)
	if !inputClosed {
		return err
	}
	select {
	case <-c.lifetime.Done():
	case <-ctx.Done():
	case <-time.After(closeTime):
	}
	return cmp.Or(c.failure(), err)
}

// trackRequests updates the unanswered requests for a message to the server: it adds a request, or
// removes the server's request that an answer belongs to.
func (c *lineConn) trackRequests(message jsonrpc.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch message := message.(type) {
	case *jsonrpc.Request:
		if message.IsCall() {
			c.unanswered[message.ID] = true
		}
	case *jsonrpc.Response:
		delete(c.unansweredServer, message.ID)
	}
}

// write writes the outgoing messages to the server's input until the connection ends.
func (c *lineConn) write() {
	for {
		select {
		case out := <-c.outgoing:
			_, err := c.process.Input.Write(out.data)
			out.done <- err
		case <-c.lifetime.Done():
			return
		}
	}
}

// Close closes the server's input. Read then returns io.EOF, and further output is ignored.
func (c *lineConn) Close() error {
	c.end(io.EOF)
	c.process.Input.Close()
	return nil
}

// read forwards the server's messages until it closes its output or exceeds a bound. Either ends the
// connection with an error.
func (c *lineConn) read() {
	defer close(c.readDone)
	reader := bufio.NewReaderSize(c.process.Output, 64<<10)
	unrequestedBytes := 0
	for {
		line, err := readLine(reader)
		if err != nil {
			c.end(err)
			return
		}
		isAnswer, err := c.deliverLine(line)
		if err != nil {
			c.end(err)
			return
		}
		unrequestedBytes += len(line) + 1
		if isAnswer {
			unrequestedBytes = 0
		}
		if unrequestedBytes > maxUnrequestedBytes {
			c.end(fmt.Errorf("it sent more than %d MiB that answer nothing", maxUnrequestedBytes>>20))
			return
		}
	}
}

// readLine returns the next line, without its end and blanks around it. The error is errClosed at the end of the
// output, and another error for a line above maxLineBytes.
func readLine(reader *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := reader.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLineBytes:
			return nil, fmt.Errorf("it sent a message of more than %d MiB", maxLineBytes>>20)
		case errors.Is(err, bufio.ErrBufferFull): // the line continues
		case err != nil && len(bytes.TrimSpace(line)) > 0:
			return line, nil // the next read returns the error
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrClosedPipe):
			return nil, errClosed
		case err != nil:
			return nil, fmt.Errorf("it closed its output: %w", err)
		default:
			return bytes.TrimSpace(line), nil
		}
	}
}

var errClosed = errors.New("it closed its output: it has ended")

// deliverLine delivers the messages of a line to Read. isAnswer reports whether one of them answers a
// request. The error is about too many requests.
func (c *lineConn) deliverLine(line []byte) (isAnswer bool, err error) {
	var raws []json.RawMessage
	isBatch := len(line) > 0 && line[0] == '[' && json.Unmarshal(line, &raws) == nil // as in revision 2025-03-26
	if !isBatch {
		raws = []json.RawMessage{line}
	}
	for _, raw := range raws {
		message, err := decode(raw)
		if err != nil {
			c.recordInvalidLine(raw)
			continue
		}
		isWanted, answersRequest, err := c.classify(message)
		isAnswer = isAnswer || answersRequest
		if err != nil {
			return isAnswer, err
		}
		if isWanted {
			select {
			case c.incoming <- message:
			case <-c.lifetime.Done():
			}
		}
	}
	return isAnswer, nil
}

// decode parses a message. It refuses JSON that is nested too deeply for encoding/json.
func decode(raw []byte) (jsonrpc.Message, error) {
	if !json.Valid(raw) {
		return nil, errors.New("not JSON")
	}
	return jsonrpc.DecodeMessage(fromServer(raw))
}

// recordInvalidLine stores the beginning of the first invalid line, to explain to people why the server does
// not work. Some servers log to standard output, against the protocol.
func (c *lineConn) recordInvalidLine(line []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.firstInvalid == "" {
		c.firstInvalid = clip.Visible(string(line), maxInvalidLineBytes)
	}
}

// classify reports whether the library needs a message from the server (isWanted), and whether the message
// answers one of our requests. The library needs such answers and the server's requests, but no
// notifications. classify itself handles the notification of changed tools. The error is about too many
// requests.
func (c *lineConn) classify(message jsonrpc.Message) (isWanted, answersRequest bool, err error) {
	switch message := message.(type) {
	case *jsonrpc.Response:
		c.mu.Lock()
		defer c.mu.Unlock()
		answersRequest := c.unanswered[message.ID]
		delete(c.unanswered, message.ID)
		return answersRequest, answersRequest, nil
	case *jsonrpc.Request:
		if message.IsCall() {
			return true, false, c.countServerRequest(message.ID)
		}
		if message.Method == methodToolsChanged {
			c.onToolsChanged()
		}
	}
	return false, false, nil
}

// countServerRequest records a request of the server. It returns an error if too many have no answer yet.
func (c *lineConn) countServerRequest(id jsonrpc.ID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.unansweredServer) >= maxServerRequests {
		return fmt.Errorf("it made more than %d requests without taking the answers", maxServerRequests)
	}
	c.unansweredServer[id] = true
	return nil
}
