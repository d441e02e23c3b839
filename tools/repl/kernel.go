package repl

import (
	_ "embed"
	"fmt"
	"sync"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/attached"
	"github.com/agent-ci/agent-ci/tools/script/message"
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
	frames      chan frame  // messages from the kernel; closed at the end
	prints      printRouter // output of its code
	sentInvalid bool        // it sent an invalid frame; set before frames is closed
	writing     sync.Mutex  // held while a message is sent
}

// start starts a kernel process.
func start(o Options) (k *kernel, err error) {
	k = &kernel{frames: make(chan frame)}
	command := sandbox.Command{
		Argv: append(launcher[:len(launcher):len(launcher)], kernelArgv()...), Dir: o.Dir, Env: append(o.Env[:len(o.Env):len(o.Env)], "NO_COLOR=1", "PWD="+o.Dir),
	}
	k.Program, err = attached.Start(o.Sandbox.Start, command, attached.Streams{Output: k.receive, Errors: k.prints.copy})
	if err != nil {
		return nil, err
	}
	return k, nil
}

// send sends a message to the kernel, and waits until the kernel reads it or ends. It ignores errors, because the end of
// the kernel reports the problem.
func (k *kernel) send(order any) {
	k.writing.Lock()
	defer k.writing.Unlock()
	_ = message.Write(k.Input, order)
}

// stop kills the kernel and waits for its end.
func (k *kernel) stop() {
	k.Kill()
	_ = k.describeEnd()
}

// describeEnd waits for the kernel's end and describes it, as the end of a sentence.
func (k *kernel) describeEnd() string {
	for range k.frames { // messages that no cell waits for
	}
	return attached.Ending(k.Wait())
}
