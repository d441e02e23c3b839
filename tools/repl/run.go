package repl

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/script"
	"github.com/agent-ci/agent-ci/tools/script/message"
)

const (
	// maxOpen is the maximum number of open calls by a cell. Further calls wait in the kernel.
	maxOpen = 64
	// markWait bounds the wait for a cell's output after its end.
	markWait = 10 * time.Second
	// endWait bounds the wait for a kernel's exit after it closed its pipe.
	endWait = 2 * time.Second
)

// runningCell is a cell in progress.
type runningCell struct {
	cell
	*kernel
	ctx    context.Context // ends with the cell
	calls  *tools.ScriptCalls
	slots  chan struct{} // limits the open calls to maxOpen
	images tools.Images

	mu    sync.Mutex
	notes string // notes for the model from the results of calls
}

// run runs a cell and returns its result. The kernel prints a mark after the cell, which ends the cell's output. unusable
// means that the kernel cannot run another cell.
func (k *kernel) run(ctx context.Context, c cell, outputs *tools.Outputs) (result tools.Result, unusable bool, err error) {
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	defer context.AfterFunc(limited, k.Kill)() // ends serveFrames, and messages that the kernel does not read
	callCtx, cancelCalls := context.WithCancel(limited)
	defer cancelCalls()
	r := &runningCell{cell: c, kernel: k, ctx: callCtx, calls: tools.ScriptCallsOf(ctx), slots: make(chan struct{}, maxOpen)}
	capture, mark := outputs.Capture(c.callID), "\x00"+rand.Text()+"\x00"
	markSeen := k.prints.begin(capture, mark)
	k.send(order{"run", c.number, c.code, mark})
	failed, done := r.serveFrames()
	if done {
		r.awaitMark(markSeen)
	}
	timedOut := !done && limited.Err() != nil
	cancelCalls()
	stopMessage := ""
	if !done {
		stopMessage = r.endKernel(timedOut)
	}
	r.calls.Answered() // so that r.notes and r.images are complete
	k.prints.end()
	r.mu.Lock()
	defer r.mu.Unlock()
	result = tools.Result{Output: r.notes + stopMessage, Printed: capture.Take(), Images: r.images.Added, Failed: failed || !done, Detail: r.images.Detail()}
	if ctx.Err() != nil {
		return result, true, ctx.Err()
	}
	if timedOut {
		if result.Detail == nil {
			result.Detail = map[string]any{}
		}
		result.Detail["timed_out"] = true
	}
	if result.Printed.Bytes() == 0 && done && result.Output == "" {
		result.Output = "Nothing was printed, and the value is undefined.\n"
	}
	return result, !done, nil
}

// serveFrames handles the messages of the running code until it ends. failed means that the code threw. done is false if
// the kernel ended before the code.
func (r *runningCell) serveFrames() (failed, done bool) {
	for f := range r.frames {
		switch {
		case f.Cell != r.number: // from code that continues after the end of its cell
		case f.Type == "done":
			return f.Failed, true
		case f.Type == "tool":
			r.startCall(f)
		default:
			r.showImage(f)
		}
	}
	return false, false
}

// awaitMark waits until markSeen is closed, up to markWait. The output may arrive after the last message, because it
// comes through another pipe.
func (r *runningCell) awaitMark(markSeen <-chan struct{}) {
	select {
	case <-markSeen:
	case <-time.After(markWait):
	case <-r.ctx.Done():
	}
}

// endKernel stops the kernel of an unfinished cell, and returns a text that tells the model why.
func (r *runningCell) endKernel(timedOut bool) string {
	const consequence = " The next call starts a new one; what was defined is gone. What the code had done by then is done. It printed:\n"
	if timedOut {
		r.stop()
		return fmt.Sprintf("js_repl took longer than %s, and its kernel was ended. If it needs longer, say so in the first line: %s timeout_ms=60000.%s", r.timeout, pragma, consequence)
	}
	if r.sentInvalid || !r.exitsSoon() {
		r.stop()
		return "js_repl failed: the code used the kernel's own pipe, and the kernel was ended." + consequence
	}
	return fmt.Sprintf("js_repl failed: its kernel %s.%s", r.describeEnd(), consequence)
}

// exitsSoon reports whether the kernel exits by itself within endWait.
func (r *runningCell) exitsSoon() bool {
	select {
	case <-r.Done():
		return true
	case <-time.After(endWait):
		return false
	}
}

// startCall makes the call of another tool that the code requests. Its result is sent to the kernel later.
func (r *runningCell) startCall(f frame) {
	select {
	case r.slots <- struct{}{}:
	case <-r.ctx.Done():
		return
	}
	call := tools.Call{Name: f.Name, Input: f.Input, Form: tools.Function}
	if f.Freeform {
		call.Form = tools.Freeform
	}
	r.calls.Start(r.ctx, call, func(result tools.Result) {
		<-r.slots
		if result.Object != nil {
			r.mu.Lock()
			r.notes += result.Notes
			r.mu.Unlock()
		}
		r.answer(script.Settle(f.Call, result))
	})
}

// showImage adds the image in a message to the result for the model.
func (r *runningCell) showImage(f frame) {
	description := ""
	data, err := base64.StdEncoding.DecodeString(f.Input)
	if err == nil {
		description, err = r.images.Add(r.ctx, data)
	}
	if err != nil {
		r.answer(message.Settled{ID: f.Call, Error: fmt.Sprintf("the image can't be shown: %v", err)})
		return
	}
	r.prints.addRemark("[Image: " + description + "]\n")
	r.answer(script.Settle(f.Call, tools.Result{Output: description}))
}

// answer sends the result of a call. After the time limit, it sends none: the code could still end by an interrupted call
// before the kernel is killed, and the model would not learn of the limit.
func (r *runningCell) answer(settled message.Settled) {
	if r.ctx.Err() == nil {
		r.send(settled)
	}
}
