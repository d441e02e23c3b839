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
	// maxHeap bounds the code's heap, maxData the data of the kernel and each child, in MiB.
	maxHeap = 512
	maxData = 4096
)

// argv returns the kernel's arguments. They include the script, so no command can change it.
func argv() []string {
	return []string{"node", "--no-warnings", "--expose-internals", fmt.Sprintf("--max-old-space-size=%d", maxHeap), "-e", source}
}

// launcher gives the kernel separate pipes, so code and children do not mistake them for standard
// streams, and bounds its memory if possible.
var launcher = []string{"sh", "-c", fmt.Sprintf(`ulimit -S -d %d 2>/dev/null; exec "$@" 3<&0 4>&1 </dev/null >&2`, maxData<<10), "sh"}

// whyNoKernel tells the model why no kernel can be started, or returns "".
func (o Options) whyNoKernel() string {
	switch words := o.ruleRefusal(); {
	case words != "":
		return "js_repl can't be used, since it runs node: " + words
	case o.Missing != "":
		return "js_repl can't be used: " + o.Missing
	}
	return ""
}

// ruleRefusal returns the refusal of a kernel by the command rules, or "".
func (o Options) ruleRefusal() string {
	if o.Judge == nil {
		return ""
	}
	d := o.Judge(policy.Request{Argv: argv(), Dir: o.Dir})
	if d.Action != policy.Refuse {
		return ""
	}
	return d.Words()
}

// kernel is a Node process that runs code and keeps its definitions.
type kernel struct {
	*attached.Program
	frames      chan frame    // messages from the kernel; closed at the end
	lines       chan []byte   // lines to send to the kernel
	prints      printRouter   // output of its code
	released    chan struct{} // closed when the kernel is no longer used
	release     func()
	sentInvalid bool           // it sent an invalid frame; set before frames is closed
	writer      sync.WaitGroup // transmit
}

// start starts a kernel.
func start(o Options) (k *kernel, err error) {
	k = &kernel{frames: make(chan frame), lines: make(chan []byte), released: make(chan struct{})}
	k.release = sync.OnceFunc(func() { close(k.released) })
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
				return // the end of the kernel reports the problem
			}
		case <-k.released:
			return
		case <-k.Done():
			return
		}
	}
}

// send queues a line. It is dropped if ctx or the kernel ends first.
func (k *kernel) send(ctx context.Context, line []byte) {
	select {
	case k.lines <- line:
	case <-ctx.Done():
	case <-k.released:
	case <-k.Done():
	}
}

// stop ends the kernel and waits for its end.
func (k *kernel) stop() {
	k.Kill()
	_ = k.describeEnd()
}

// describeEnd describes the kernel's end for a sentence. It waits for the end.
func (k *kernel) describeEnd() string {
	k.release()
	k.writer.Wait()
	return attached.Ending(k.Wait())
}
