package repl

import (
	"context"
	_ "embed"
	"fmt"
	"sync"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/attached"
)

//go:embed kernel.cjs
var source string

const (
	// mostHeap bounds what code keeps, and mostData all that the kernel and what it starts have of
	// their own each, in MiB.
	mostHeap = 512
	mostData = 4096
)

// argv is the kernel's. The script is an argument, so that no command can change it.
func argv() []string {
	return []string{"node", "--no-warnings", "--expose-internals", fmt.Sprintf("--max-old-space-size=%d", mostHeap), "-e", source}
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
	*attached.Program
	frames chan frame    // that it sent; closed once it sends no more
	lines  chan []byte   // for it
	prints prints        // what its code prints
	left   chan struct{} // closed when nobody asks it any more
	leave  func()
	broke  bool           // it sent what is no frame; set before frames is closed
	writer sync.WaitGroup // transmit
}

// start starts a kernel.
func start(o Options) (k *kernel, err error) {
	k = &kernel{frames: make(chan frame), lines: make(chan []byte), left: make(chan struct{})}
	k.leave = sync.OnceFunc(func() { close(k.left) })
	command := sandbox.Command{
		Argv: append(launcher[:len(launcher):len(launcher)], argv()...), Dir: o.Dir, Env: append(o.Env[:len(o.Env):len(o.Env)], "NO_COLOR=1", "PWD="+o.Dir),
	}
	k.Program, err = attached.Start(o.Sandbox.Start, command, attached.Streams{Output: k.receive, Errors: k.prints.copy})
	if err != nil {
		return nil, err
	}
	k.writer.Go(k.transmit)
	return k, nil
}

// transmit writes lines to the kernel.
func (k *kernel) transmit() {
	for {
		select {
		case line := <-k.lines:
			if _, err := k.Input.Write(line); err != nil {
				return // the end of the kernel tells
			}
		case <-k.left:
			return
		case <-k.Done():
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
	case <-k.Done():
	}
}

// stop ends the kernel and waits for its end.
func (k *kernel) stop() {
	k.Kill()
	_ = k.how()
}

// how says how the kernel ended by itself, for a sentence. It waits for the end.
func (k *kernel) how() string {
	k.leave()
	k.writer.Wait()
	return attached.Ending(k.Wait())
}
