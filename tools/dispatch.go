package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/policy/clip"
)

// Dispatcher runs the calls of a model. Each call gets exactly one result, whatever the model wrote and whatever the
// tool does.
type Dispatcher struct {
	Registry *Registry
	Outputs  *Outputs
	Observer Observer // may be nil
	Offered  []string // names of the tools offered to the model
	// Gate decides about each call. It may be nil.
	Gate Gate
	// TextBefore returns text to put before a call's output, or "". It is called concurrently, even after cancellation.
	// It may be nil.
	TextBefore func() string
	// CountScriptCall counts a call that a script makes. It returns why the call is refused, or "". It is called
	// concurrently. It may be nil.
	CountScriptCall func() (refused string)
	// SharesOrderWith is the dispatcher of another agent in the same tree, or nil. Mutating calls of both run one after
	// the other.
	SharesOrderWith *Dispatcher

	order order
}

// callOrder returns the order of calls, which may belong to another agent's dispatcher.
func (d *Dispatcher) callOrder() *order {
	if d.SharesOrderWith != nil {
		return d.SharesOrderWith.callOrder()
	}
	return &d.order
}

// parallelCalls is the maximum number of calls of an answer, or of a script, that run at once.
const parallelCalls = 8

// Observer is notified of each call, from several goroutines.
type Observer interface {
	// Started is called before the call has any effect, in the order of the calls. If it returns an error, the call does
	// not run.
	Started(Started) error
	// Finished is called once for each Started, in order of the calls' ends.
	Finished(Finished)
}

// Started is a call about to run.
type Started struct {
	Call           Call   // as the model wrote it
	Tool           string // name of the tool that answers; the name in the call if there is none
	Offered        bool
	Mutates        bool
	ConvertedInput string // the input as the tool gets it, if that differs from the call's
	Refused        bool   // the call does not run, and no gate is asked
}

// Finished is an ended call.
type Finished struct {
	Call       Call
	Tool       string
	Result     Result // as the model gets it
	Uncut      UncutOutput
	Duration   time.Duration
	Ran        bool   // the tool's Run was called
	IsExternal bool   // the tool is not agent-ci's own
	GateInput  string // the input that the gate put in place of the one in Started, or ""
	// Fault is a failure of the tool itself: a cancellation, an error of agent-ci, or a *Panic. It is nil for mistakes of
	// the model.
	Fault error
}

// Panic reports a panic of a tool.
type Panic struct {
	Value      any
	Stack      []byte
	IsExternal bool // the tool is not agent-ci's own
}

// Error returns a message without details for developers, because the model reads it.
func (p *Panic) Error() string {
	if p.IsExternal {
		return "the tool crashed. This is a fault of the tool, not of the call; try another way"
	}
	return "the tool crashed. This is a fault of agent-ci, not of the call; try another way"
}

// Dispatch runs calls and returns their results in order. Reading calls run in parallel. A mutating call runs alone,
// after all earlier and before all later calls. A call that has not started when ctx ends is reported as aborted.
func (d *Dispatcher) Dispatch(ctx context.Context, calls []Call) []Result {
	batch := d.Begin(ctx)
	for _, call := range calls {
		batch.Start(call)
	}
	batch.Commit()
	return batch.Wait()
}

// callTarget is a call with its tool.
type callTarget struct {
	Started
	entry         *entry   // nil if there is no such tool
	convertedCall Call     // the call as the tool's Run gets it
	ignored       []string // removed arguments to tell the model about
	refusal       string   // tells the model why the call does not run, or ""
	err           error    // why the call could not be prepared
}

// canRun reports whether the call was neither refused nor failed to be prepared.
func (t callTarget) canRun() bool { return t.refusal == "" && t.err == nil }

// runsScript reports whether the call runs a script, which makes calls itself.
func (t callTarget) runsScript() bool { return t.canRun() && t.entry.Scripts }

// resolveTarget returns a call with its tool and converted arguments, or with a refusal.
func (d *Dispatcher) resolveTarget(call Call) callTarget {
	t := d.findTarget(call)
	t.Refused = !t.canRun()
	if t.canRun() && t.convertedCall.Input != call.Input {
		t.ConvertedInput = t.convertedCall.Input
	}
	return t
}

// findTarget finds the tool of a call and converts the arguments for it. If the call cannot run, it sets refusal or err.
func (d *Dispatcher) findTarget(call Call) callTarget {
	t := callTarget{Started: Started{Call: call, Tool: call.Name}, entry: d.Registry.find(call.Name, d.Offered)}
	switch {
	case call.Refused != "":
		t.refusal = call.Refused
		return t
	case t.entry == nil:
		t.refusal = d.unknownToolRefusal(call)
		return t
	}
	t.Tool = t.entry.Spec.Name
	t.Mutates = t.entry.Mutates
	if t.refusal = t.entry.refusal; t.refusal != "" {
		return t
	}
	t.Offered = slices.Contains(d.Offered, t.Tool)
	t.err = t.convert()
	if t.canRun() {
		t.Mutates = t.entry.mutatesIn(t.convertedCall)
	}
	return t
}

// mutatesIn reports whether a call mutates. If the tool's MutatesCall panics, it returns true, which is safe.
func (t Tool) mutatesIn(call Call) (mutates bool) {
	if t.MutatesCall == nil {
		return t.Mutates
	}
	defer func() {
		if recover() != nil {
			mutates = true
		}
	}()
	return t.MutatesCall(call)
}

// reportStart tells the observer that a call is about to run. It returns an error if the call must not run.
func (d *Dispatcher) reportStart(t callTarget) error {
	if d.Observer == nil {
		return nil
	}
	if err := d.Observer.Started(t.Started); err != nil {
		return fmt.Errorf("the call was not run, as it could not be recorded: %w", err)
	}
	return nil
}

// run runs a call that was reported as started, with the gate's questions before and after it, and reports its end. If
// refused, the error of reportStart, is not nil, the call does not run and fails with that error.
func (d *Dispatcher) run(ctx context.Context, t callTarget, refused error) Result {
	started := time.Now()
	originalInput := t.convertedCall.Input
	ctx = WithCall(ctx, t.Call)
	var result Result
	ran, fault := false, refused
	if fault == nil {
		var gateText string
		t, gateText = d.askGateBefore(ctx, t)
		result, ran, fault = d.runTool(d.withCalls(ctx, t), t)
		if fault == nil && !result.Recorded { // a recorded result stays as the model got it
			result = result.withPrefix(gateText)
		}
	}
	duration := time.Since(started)
	switch {
	case fault != nil && ctx.Err() != nil:
		result = failedResult(result, fmt.Sprintf("aborted after %.1f s", duration.Seconds()))
	case fault != nil:
		result = failedResult(result, fmt.Sprintf("%s failed: %v", t.Tool, fault))
	}
	result, uncut := d.Outputs.finish(t.Call, result)
	result, uncut = d.askGateAfter(ctx, t, ran, result, uncut)
	finished := Finished{Call: t.Call, Tool: t.Tool, Result: result, Uncut: uncut, Duration: duration, Fault: fault, Ran: ran, IsExternal: t.entry != nil && t.entry.Foreign}
	if ran && t.convertedCall.Input != originalInput {
		finished.GateInput = t.convertedCall.Input
	}
	if ran && !result.Recorded {
		finished.Result = result.withPrefix(d.textBefore())
	}
	if d.Observer != nil {
		d.Observer.Finished(finished)
	}
	return finished.Result
}

// failedResult returns the result of a failed call: words, followed by what its command has printed.
func failedResult(result Result, words string) Result {
	result.Output, result.Commands, result.Failed = words, nil, true
	if result.Printed != nil && result.Printed.Bytes() > 0 {
		result.Output += "\nOutput:\n"
	}
	return result
}

// runTool runs the tool, unless the call was refused or ctx has ended. ran reports whether the tool's Run was called.
func (d *Dispatcher) runTool(ctx context.Context, t callTarget) (result Result, ran bool, err error) {
	if err := cmp.Or(ctx.Err(), t.err); err != nil {
		return Refuse(t.refusal), false, err
	}
	if t.refusal != "" {
		return Refuse(t.refusal), false, nil
	}
	err = catchPanic(func() (err error) {
		result, err = t.entry.Run(ctx, t.convertedCall)
		return err
	})
	if toolPanic, isPanic := errors.AsType[*Panic](err); isPanic {
		toolPanic.IsExternal = t.entry.Foreign
	}
	if err == nil && !result.Recorded {
		result = result.withPrefix(ignoredNote(t.ignored))
	}
	return result, true, err
}

// catchPanic calls run and returns its error. It turns a panic or a runtime.Goexit in run into an error.
func catchPanic(run func() error) error {
	err := errors.New("the tool ended without a result")
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if value := recover(); value != nil {
				err = &Panic{Value: value, Stack: debug.Stack()}
			}
		}()
		err = run()
	}()
	<-done
	return err
}

// textBefore returns the text of TextBefore as a line for the model, or "".
func (d *Dispatcher) textBefore() string {
	if d.TextBefore == nil {
		return ""
	}
	return d.Outputs.cleanLine(d.TextBefore())
}

// withPrefix returns the result with words before its output: in Output, and in Commands and Parts if they are set.
func (r Result) withPrefix(words string) Result {
	if len(r.Commands) > 0 {
		r.Commands[0].Output = words + r.Commands[0].Output
	}
	if len(r.Parts) > 0 && r.Parts[0].Image == nil {
		r.Parts[0].Text = words + r.Parts[0].Text
	}
	r.Output = words + r.Output
	return r
}

// unknownToolRefusal returns the refusal of a call to an unknown tool. It lists the tools that the model may call.
func (d *Dispatcher) unknownToolRefusal(call Call) string {
	names := d.Registry.Names()
	if len(d.Offered) > 0 {
		names = slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(d.Offered, name) })
	}
	return fmt.Sprintf("unsupported call: %s. The tools are: %s.", clip.Bytes(call.Name, 200), strings.Join(names, ", "))
}
