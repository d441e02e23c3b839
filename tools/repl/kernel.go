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
	// maxHeap limits the heap of the code, and maxData the memory of the kernel and each child process, in MiB.
	maxHeap = 512
	maxData = 4096
)

// kernelArgv returns the kernel's command line. It contains the kernel's script, so that no command can change it.
func kernelArgv() []string {
	return []string{"node", "--no-warnings", "--expose-internals", fmt.Sprintf("--max-old-space-size=%d", maxHeap), "-e", source}
}

// launcher is the beginning of the command line that starts the kernel. It moves the pipes for messages away from the
// standard streams, so that code and child processes do not use them, and limits the memory if possible.
var launcher = []string{"sh", "-c", fmt.Sprintf(`ulimit -S -d %d 2>/dev/null; exec "$@" 3<&0 4>&1 </dev/null >&2`, maxData<<10), "sh"}

// whyNoKernel returns a text that tells the model why no kernel may be started, or "".
func (o Options) whyNoKernel() string {
	switch words := o.ruleRefusal(); {
	case words != "":
		return "js_repl can't be used, since it runs node: " + words
	case o.State.Missing != "":
		return "js_repl can't be used: " + o.State.Missing
	}
	return ""
}

// ruleRefusal returns the refusal if the command rules forbid a kernel, or "".
func (o Options) ruleRefusal() string {
	d := o.Rules.Decide(policy.Request{Argv: kernelArgv(), Dir: o.Dir})
	if d.Action != policy.Refuse {
		return ""
	}
	return d.Words()
}

// kernel is a Node process that runs code and keeps its definitions.
type kernel struct {
	*attached.Program
	frames      chan frame      // messages from the kernel; closed at the end
	lines       chan []byte     // lines to send to the kernel
	prints      printRouter     // output of its code
	released    context.Context // done when the kernel is no longer used
	release     context.CancelFunc
	sentInvalid bool           // it sent an invalid frame; set before frames is closed
	writer      sync.WaitGroup // waits for transmit
}

// start starts a kernel process.
func start(o Options) (k *kernel, err error) {
	k = &kernel{frames: make(chan frame), lines: make(chan []byte)}
	k.released, k.release = context.WithCancel(context.Background())
	command := sandbox.Command{
		Argv: append(launcher[:len(launcher):len(launcher)], kernelArgv()...), Dir: o.Dir, Env: append(o.Env[:len(o.Env):len(o.Env)], "NO_COLOR=1", "PWD="+o.Dir),
	}
	k.Program, err = attached.Start(o.Sandbox.Start, command, attached.Streams{Output: k.receive, Errors: k.prints.copy})
	if err != nil {
		return nil, err
	}
	k.writer.Go(k.transmit)
	return k, nil
}

// transmit writes the lines in k.lines to the kernel until it ends or is released.
func (k *kernel) transmit() {
	for {
		select {
		case line := <-k.lines:
			if _, err := k.Input.Write(line); err != nil {
				return // the end of the kernel reports the problem
			}
		case <-k.released.Done():
			return
		case <-k.Done():
			return
		}
	}
}

// stop kills the kernel and waits for its end.
func (k *kernel) stop() {
	k.Kill()
	_ = k.describeEnd()
}

// describeEnd waits for the kernel's end and describes it, as the end of a sentence.
func (k *kernel) describeEnd() string {
	k.release()
	k.writer.Wait()
	return attached.Ending(k.Wait())
}
