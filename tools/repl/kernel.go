package repl

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/sandbox"
)

//go:embed kernel.cjs
var script string

const (
	// mostHeap bounds what code keeps, and mostData all that the kernel and what it starts have of
	// their own each, in MiB.
	mostHeap = 512
	mostData = 4096
	// drainWait is how long a kernel that has ended is still read while a process that it left
	// behind holds its pipes.
	drainWait = 100 * time.Millisecond
)

// argv is the kernel's. The script is an argument, so that no command can change it.
func argv() []string {
	return []string{"node", "--no-warnings", "--expose-internals", fmt.Sprintf("--max-old-space-size=%d", mostHeap), "-e", script}
}

// launcher gives the kernel pipes that neither its code nor what that starts takes for its
// standard streams, and bounds its memory where the system does that.
var launcher = []string{"sh", "-c", fmt.Sprintf(`ulimit -S -d %d 2>/dev/null; exec "$@" 3<&0 4>&1 </dev/null >&2`, mostData<<10), "sh"}

// denial is why no kernel is started, in words for the model; empty where one is.
func (o Options) denial() string {
	switch words := o.refusal(); {
	case words != "":
		return "js_repl can't be used, since it runs node: " + words
	case o.Missing != "":
		return "js_repl can't be used: " + o.Missing
	}
	return ""
}

// refusal is what the rules on commands have against a kernel; empty for nothing.
func (o Options) refusal() string {
	if o.Judge == nil {
		return ""
	}
	d := o.Judge(policy.Request{Argv: argv(), Dir: o.Dir})
	if d.Action != policy.Refuse {
		return ""
	}
	return d.Words()
}

// kernel is a process of Node that runs code, and keeps what that defines until its end.
type kernel struct {
	process                *sandbox.Process
	input, output, printed *os.File
	frames                 chan frame    // that it sent; closed once it sends no more
	lines                  chan []byte   // for it
	prints                 prints        // what its code prints
	left                   chan struct{} // closed when nobody asks it any more
	leave                  func()
	over                   chan struct{} // closed when it has ended and all was read
	broke                  bool          // it sent what is no frame; set before frames is closed
	status                 sandbox.Status
	err                    error
}

// start starts a kernel.
func start(o Options) (*kernel, error) {
	var ours, theirs [3]*os.File
	for i := range ours {
		reads, writes, err := os.Pipe()
		if err != nil {
			closeAll(ours[:i], theirs[:i])
			return nil, fmt.Errorf("make a pipe for the kernel: %w", err)
		}
		if ours[i], theirs[i] = reads, writes; i == 0 {
			ours[i], theirs[i] = writes, reads
		}
	}
	defer closeAll(theirs[:])
	process, err := o.Sandbox.Start(sandbox.Command{
		Argv: append(launcher[:len(launcher):len(launcher)], argv()...), Dir: o.Dir, Env: append(o.Env[:len(o.Env):len(o.Env)], "NO_COLOR=1", "PWD="+o.Dir),
		Streams: &sandbox.Streams{Input: theirs[0], Output: theirs[1], Error: theirs[2]},
	})
	if err != nil {
		closeAll(ours[:])
		return nil, err
	}
	k := &kernel{
		process: process, input: ours[0], output: ours[1], printed: ours[2],
		frames: make(chan frame), lines: make(chan []byte), left: make(chan struct{}), over: make(chan struct{}),
	}
	k.leave = sync.OnceFunc(func() { close(k.left) })
	go k.follow()
	return k, nil
}

// follow reads from the kernel and writes to it until its end.
func (k *kernel) follow() {
	defer close(k.over)
	var streams sync.WaitGroup
	streams.Go(k.receive)
	streams.Go(k.transmit)
	streams.Go(func() { k.prints.copy(sandbox.Drain(k.printed)) })
	<-k.process.Done()
	k.status, k.err = k.process.Wait()
	_ = k.input.Close() // transmit may wait for a reader
	for _, stream := range []*os.File{k.output, k.printed} {
		_ = stream.SetReadDeadline(time.Now().Add(drainWait))
	}
	streams.Wait()
	closeAll([]*os.File{k.output, k.printed})
}

// transmit writes lines to the kernel.
func (k *kernel) transmit() {
	for {
		select {
		case line := <-k.lines:
			if _, err := k.input.Write(line); err != nil {
				return // the end of the kernel tells
			}
		case <-k.left:
			return
		case <-k.process.Done():
			return
		}
	}
}

// send has a line written; it is dropped where ctx ends, or the kernel, before it is taken.
func (k *kernel) send(ctx context.Context, line []byte) {
	select {
	case k.lines <- line:
	case <-ctx.Done():
	case <-k.left:
	case <-k.process.Done():
	}
}

func (k *kernel) hasEnded() bool {
	select {
	case <-k.process.Done():
		return true
	default:
		return false
	}
}

// stop ends the kernel and waits for its end.
func (k *kernel) stop() {
	k.leave()
	k.process.Kill()
	<-k.over
}

// how says how the kernel ended by itself, for a sentence. It waits for the end.
func (k *kernel) how() string {
	k.leave()
	<-k.over
	switch {
	case k.err != nil:
		return "ended: " + k.err.Error()
	case k.status.Signal != "":
		return "was ended by " + k.status.Signal
	}
	return fmt.Sprintf("ended with exit status %d", k.status.ExitCode)
}

func closeAll(lists ...[]*os.File) {
	for _, files := range lists {
		for _, f := range files {
			_ = f.Close()
		}
	}
}
