//go:build unix

// Package attached runs a sandboxed program with pipes. It writes the program's input, reads its output,
// and closes both when the program exits.
package attached

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/proc"
)

// drainWait bounds reading after the program has exited, because its child processes may keep the
// streams open.
const drainWait = 100 * time.Millisecond

// starter starts a command, as a Sandbox does.
type starter func(sandbox.Command) (*sandbox.Process, error)

// Streams are the other ends of a program's standard streams.
type Streams struct {
	// Input is all of the standard input; nil if the caller writes it to Program.Input.
	Input io.Reader
	// Output and Errors read standard output and standard error, each in a goroutine. The stream is closed
	// when they return: a program that still writes gets SIGPIPE. An error kills the program, and Wait
	// returns it. A nil Output leaves standard output to the caller, who reads Program.Output and calls
	// Close.
	Output, Errors func(io.Reader) error
}

// To reads a stream into w.
func To(w io.Writer) func(io.Reader) error {
	return func(r io.Reader) error {
		_, err := io.Copy(struct{ io.Writer }{w}, r)
		return err
	}
}

// UpTo reads a stream of up to limit bytes into w, and returns tooMuch if there are more.
func UpTo(w io.Writer, limit int64, tooMuch error) func(io.Reader) error {
	return func(r io.Reader) error {
		copied, err := io.Copy(w, io.LimitReader(r, limit))
		if err != nil {
			return err
		}
		if copied < limit {
			return nil
		}
		if more, _ := io.ReadFull(r, make([]byte, 1)); more > 0 {
			return tooMuch
		}
		return nil
	}
}

// Program is a started program. Done, Exited, Kill and Signal are those of its process; Wait also waits for
// the streams.
type Program struct {
	*sandbox.Process
	Input  *os.File  // closed when the program has exited
	Output io.Reader // ends when the program has exited and what it wrote was read

	streams      sync.WaitGroup
	streamErrors chan error    // errors of the streams
	finished     chan struct{} // closed when the program has exited and the streams are read
	status       sandbox.Status
	err          error
	output       *os.File
}

// Start starts a command with pipes as its standard streams.
func Start(start starter, c sandbox.Command, s Streams) (*Program, error) {
	var ourEnds, childEnds [3]*os.File
	defer func() { closeAll(childEnds) }()
	for i := range ourEnds {
		reads, writes, err := os.Pipe()
		if err != nil {
			closeAll(ourEnds)
			return nil, fmt.Errorf("%w: make a pipe: %w", sandbox.ErrNotStarted, err)
		}
		ourEnds[i], childEnds[i] = reads, writes
		if i == 0 { // the program reads its input
			ourEnds[i], childEnds[i] = writes, reads
		}
	}
	c.Streams = &sandbox.Streams{Input: childEnds[0], Output: childEnds[1], Error: childEnds[2]}
	process, err := start(c)
	if err != nil {
		closeAll(ourEnds)
		return nil, err
	}
	p := &Program{
		Process: process, Input: ourEnds[0], Output: endAtDeadline{proc.Drain(ourEnds[1])},
		streamErrors: make(chan error, len(ourEnds)), finished: make(chan struct{}), output: ourEnds[1],
	}
	if s.Input != nil {
		p.streams.Go(func() { p.killOnError(writeInput(p.Input, s.Input)) })
	}
	if s.Output != nil {
		p.streams.Go(func() {
			defer ourEnds[1].Close()
			p.killOnError(s.Output(p.Output))
		})
	}
	p.streams.Go(func() {
		defer ourEnds[2].Close()
		p.killOnError(s.Errors(endAtDeadline{proc.Drain(ourEnds[2])}))
	})
	go p.closeStreamsOnExit(ourEnds)
	return p, nil
}

// Run runs a command to its end, and kills it if ctx ends first.
func Run(ctx context.Context, start starter, c sandbox.Command, s Streams) (sandbox.Status, error) {
	p, err := Start(start, c, s)
	if err != nil {
		return sandbox.Status{}, err
	}
	defer context.AfterFunc(ctx, p.Kill)()
	return p.Wait()
}

// closeStreamsOnExit waits until the program exits, and then ends the streams.
func (p *Program) closeStreamsOnExit(ourEnds [3]*os.File) {
	defer close(p.finished)
	p.status, p.err = p.Process.Wait()
	_ = p.Input.Close() // ends a pending write, since nobody reads it any more
	for _, stream := range ourEnds[1:] {
		_ = stream.SetReadDeadline(time.Now().Add(drainWait))
	}
	p.streams.Wait()
	select {
	case p.err = <-p.streamErrors:
	default:
	}
}

// killOnError kills the program if err, the error of a stream, is not nil.
func (p *Program) killOnError(err error) {
	if err != nil {
		p.streamErrors <- err
		p.Kill()
	}
}

// writeInput writes all of the input. A program may ignore it without an error.
func writeInput(to *os.File, from io.Reader) error {
	_, err := io.Copy(to, from)
	_ = to.Close()
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// Wait waits until the program has exited and the streams are read.
func (p *Program) Wait() (sandbox.Status, error) {
	<-p.finished
	return p.status, p.err
}

// Close kills the program, waits for it and closes the caller's readers.
func (p *Program) Close() {
	p.Kill()
	<-p.finished
	_ = p.output.Close()
}

// endAtDeadline reads a stream. It returns io.EOF at the stream's end, after its deadline, and once it is
// closed.
type endAtDeadline struct{ io.Reader }

func (r endAtDeadline) Read(to []byte) (int, error) {
	n, err := r.Reader.Read(to)
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, os.ErrClosed) {
		err = io.EOF
	}
	return n, err
}

func closeAll(files [3]*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}
