package code

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/tools/code/internal/message"
)

// drainWait is how long the streams of an engine that has ended are still read while somebody else
// holds them.
const drainWait = 100 * time.Millisecond

// engine is a process that runs one script, with our ends of its streams.
type engine struct {
	process               *sandbox.Process
	input, output, errors *os.File
	reports               *message.Reader // of output
	said                  head            // on standard error
	readers               sync.WaitGroup
	ended                 func() string
}

// environ is all of the engine's environment. It is a small program beside those of the run.
var environ = []string{"GOMAXPROCS=2", "GOTRACEBACK=none", "TZ=UTC"}

// startEngine starts an engine and waits until it can take a script.
func (t *Tools) startEngine(ctx context.Context) (*engine, error) {
	e, err := t.launch()
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, e.process.Kill)()
	var first message.Report
	if err := e.reports.Read(&first); err != nil || !first.Ready {
		return nil, fmt.Errorf("%s %s", t.options.Program[0], e.end())
	}
	return e, nil
}

func (t *Tools) launch() (*engine, error) {
	var ours, theirs [3]*os.File
	for i := range ours {
		reads, writes, err := os.Pipe()
		if err != nil {
			closeAll(ours[:i], theirs[:i])
			return nil, fmt.Errorf("make a pipe: %w", err)
		}
		if ours[i], theirs[i] = reads, writes; i == 0 {
			ours[i], theirs[i] = writes, reads
		}
	}
	defer closeAll(theirs[:])
	process, err := t.options.Sandbox.Start(sandbox.Command{
		Argv: t.options.Program, Dir: "/", Env: environ, Streams: &sandbox.Streams{Input: theirs[0], Output: theirs[1], Error: theirs[2]},
	})
	if err != nil {
		closeAll(ours[:])
		return nil, err
	}
	e := &engine{process: process, input: ours[0], output: ours[1], errors: ours[2], reports: message.NewReader(sandbox.Drain(ours[1]))}
	e.ended = sync.OnceValue(e.close)
	e.readers.Go(func() { _, _ = io.Copy(&e.said, sandbox.Drain(e.errors)) })
	e.readers.Go(func() {
		<-e.process.Done()
		_ = e.output.SetReadDeadline(time.Now().Add(drainWait))
		_ = e.errors.SetReadDeadline(time.Now().Add(drainWait))
	})
	return e, nil
}

// tell sends an order. An engine that has ended takes none, as its reports say.
func (e *engine) tell(order message.Order) { _ = message.Write(e.input, order) }

// end ends the process, waits for it and says how it ended.
func (e *engine) end() string { return e.ended() }

func (e *engine) close() string {
	_ = e.input.Close()
	e.process.Kill()
	<-e.process.Done()
	status, err := e.process.Wait()
	e.readers.Wait()
	closeAll([]*os.File{e.output, e.errors})
	how := fmt.Sprintf("ended with exit status %d", status.ExitCode)
	switch {
	case err != nil:
		how = fmt.Sprintf("ended: %v", err)
	case status.Signal != "":
		how = "was ended by " + status.Signal
	}
	if said := e.said.line(); said != "" {
		how += ": " + said
	}
	return how
}

// head keeps the beginning of what is written to it.
type head struct{ beginning []byte }

// headLength is how many bytes a head keeps.
const headLength = 300

func (h *head) Write(p []byte) (int, error) {
	h.beginning = append(h.beginning, p[:min(len(p), headLength-len(h.beginning))]...)
	return len(p), nil
}

// line is the first one.
func (h *head) line() string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(h.beginning), []byte("\n"))
	return strings.ToValidUTF8(string(line), "\uFFFD")
}

func closeAll(lists ...[]*os.File) {
	for _, files := range lists {
		for _, f := range files {
			_ = f.Close()
		}
	}
}

// spare is an engine that is being started before anybody needs it.
type spare struct {
	ready  chan struct{} // closed once it is started, or could not be
	engine *engine
	err    error
}

// Warm starts an engine in the background, so that the next script need not wait for one.
func (t *Tools) Warm() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.spare != nil {
		return
	}
	s := &spare{ready: make(chan struct{})}
	t.spare = s
	t.running.Go(func() {
		defer close(s.ready)
		s.engine, s.err = t.startEngine(t.ctx)
	})
}

// engine is the spare one, or else a new one.
func (t *Tools) engine(ctx context.Context) (*engine, error) {
	t.mu.Lock()
	s := t.spare
	t.spare = nil
	t.mu.Unlock()
	if s == nil {
		return t.startEngine(ctx)
	}
	<-s.ready
	if s.err == nil && s.engine.alive() {
		return s.engine, nil
	}
	s.discard()
	return t.startEngine(ctx)
}

func (e *engine) alive() bool {
	select {
	case <-e.process.Done():
		return false
	default:
		return true
	}
}

func (s *spare) discard() {
	<-s.ready
	if s.err == nil {
		s.engine.end()
	}
}
