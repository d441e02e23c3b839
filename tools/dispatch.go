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

// Dispatcher runs the calls of a model: whatever the model wrote and whatever
// a tool does, each call gets one result.
type Dispatcher struct {
	Registry *Registry
	Outputs  *Outputs
	Observer Observer // may be nil
	Offered  []string // tools that the model was told of
	// Gate is asked about each call; it may be nil.
	Gate Gate
	// TextBefore returns text for the model before a call's output, or "". It is called concurrently,
	// even after cancellation; may be nil.
	TextBefore func() string
	// CountScriptCall counts a script's call and returns the reason against it, or "". It is called
	// concurrently; may be nil.
	CountScriptCall func() (refused string)
	// SharesOrderWith is the dispatcher of another agent in the same tree. Their mutating calls run one
	// after the other. May be nil.
	SharesOrderWith *Dispatcher

	order order
}

// callOrder returns the order of calls.
func (d *Dispatcher) callOrder() *order {
	if d.SharesOrderWith != nil {
		return d.SharesOrderWith.callOrder()
	}
	return &d.order
}

// parallelCalls is how many calls of an answer, or of a script, run at once.
const parallelCalls = 8

// Observer is told of each call, from several goroutines.
type Observer interface {
	// Started comes before the call has any effect, in the order of the calls.
	// When it fails the call is not run.
	Started(Started) error
	// Finished is called once for each Started, in order of the calls' ends.
	Finished(Finished)
}

// Started is a call about to run.
type Started struct {
	Call           Call   // as the model wrote it
	Tool           string // that answers; the call's own name when there is none
	Offered        bool
	Mutates        bool
	ConvertedInput string // the input in the form that the tool takes, where that is another
	Refused        bool   // it is not run, and no gate is asked
}

// Finished is an ended call.
type Finished struct {
	Call       Call
	Tool       string
	Result     Result // as the model gets it
	Uncut      UncutOutput
	Duration   time.Duration
	Ran        bool   // the tool was asked
	IsExternal bool   // the tool is not of agent-ci
	GateInput  string // the input that a gate had it asked with; empty for that of Started
	// Fault is a failure of the tool itself: cancellation, an error of agent-ci, a *Panic. Mistakes
	// of the model leave it nil.
	Fault error
}

// Panic reports a panic of a tool.
type Panic struct {
	Value      any
	Stack      []byte
	IsExternal bool // it is of a tool that is not agent-ci's
}

// Error omits details for developers, because the model reads it too.
func (p *Panic) Error() string {
	if p.IsExternal {
		return "the tool crashed. This is a fault of the tool, not of the call; try another way"
	}
	return "the tool crashed. This is a fault of agent-ci, not of the call; try another way"
}

// Dispatch runs calls and returns their results in order. Reading calls run in parallel; a mutating
// one runs alone between its neighbours. A call not started before ctx ended is answered as
// aborted.
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
	entry         *entry   // nil when no tool has the name
	convertedCall Call     // what the tool's Run gets
	ignored       []string // arguments that were taken away
	refusal       string   // why the tool is not asked, in words for the model
	err           error    // why the call could not be prepared
}

func (t callTarget) scripts() bool {
	return t.entry != nil && t.entry.Scripts && t.refusal == "" && t.err == nil
}

// target returns what a call is for: the tool and the converted arguments, or why the call is refused.
func (d *Dispatcher) target(call Call) callTarget {
	t := d.prepared(call)
	if t.Refused = t.refusal != "" || t.err != nil; !t.Refused && t.convertedCall.Input != call.Input {
		t.ConvertedInput = t.convertedCall.Input
	}
	return t
}

// prepared finds the tool of a call and converts the arguments for it. refusal is for the model.
func (d *Dispatcher) prepared(call Call) callTarget {
	t := callTarget{Started: Started{Call: call, Tool: call.Name}, entry: d.Registry.find(call.Name, d.Offered)}
	switch {
	case call.Refused != "":
		t.refusal = call.Refused
		return t
	case t.entry == nil:
		t.refusal = d.unknown(call)
		return t
	}
	t.Tool, t.Mutates, t.refusal = t.entry.Spec.Name, t.entry.Mutates, t.entry.denied
	if t.refusal != "" {
		return t
	}
	t.Offered = slices.Contains(d.Offered, t.Tool)
	if t.err = t.prepare(); t.err == nil && t.refusal == "" {
		t.Mutates = t.entry.mutates(t.convertedCall)
	}
	return t
}

// mutates reports whether a call mutates. If the tool panics, it does: the call runs alone, and Run
// reports the fault.
func (t Tool) mutates(call Call) (yes bool) {
	if t.MutatesCall == nil {
		return t.Mutates
	}
	defer func() {
		if recover() != nil {
			yes = true
		}
	}()
	return t.MutatesCall(call)
}

func (d *Dispatcher) started(t callTarget) error {
	if d.Observer == nil {
		return nil
	}
	if err := d.Observer.Started(t.Started); err != nil {
		return fmt.Errorf("the call was not run, as it could not be recorded: %w", err)
	}
	return nil
}

// run runs a reported call. refused is the reason against it.
func (d *Dispatcher) run(ctx context.Context, t callTarget, refused error) Result {
	begin := time.Now()
	result, ran, fault, asked := Result{}, false, refused, t.convertedCall.Input
	ctx = WithCall(ctx, t.Call)
	if fault == nil {
		var before string
		t, before = d.askGateBefore(ctx, t)
		result, ran, fault = d.answer(d.withCalls(ctx, t), t)
		if fault == nil && !result.Recorded {
			result = result.withPrefix(before)
		}
	}
	took := time.Since(begin)
	switch {
	case fault == nil:
	case ctx.Err() != nil:
		result = failedResult(result, fmt.Sprintf("aborted after %.1f s", took.Seconds()))
	default:
		result = failedResult(result, fmt.Sprintf("%s failed: %v", t.Tool, fault))
	}
	result, whole := d.Outputs.finish(t.Call, result)
	result, whole = d.askGateAfter(ctx, t, ran, result, whole)
	ended := Finished{Call: t.Call, Tool: t.Tool, Result: result, Uncut: whole, Duration: took, Fault: fault, Ran: ran, IsExternal: t.entry != nil && t.entry.Foreign}
	if ran && t.convertedCall.Input != asked {
		ended.GateInput = t.convertedCall.Input
	}
	if ran && !result.Recorded {
		ended.Result = result.withPrefix(d.aside())
	}
	if d.Observer != nil {
		d.Observer.Finished(ended)
	}
	return ended.Result
}

// failedResult returns the result of a failed call with its output so far.
func failedResult(result Result, words string) Result {
	result.Output, result.Commands, result.Failed = words, nil, true
	if result.Printed != nil && result.Printed.Bytes() > 0 {
		result.Output += "\nOutput:\n"
	}
	return result
}

// answer is the tool's result; ran says whether the tool was asked.
func (d *Dispatcher) answer(ctx context.Context, t callTarget) (result Result, ran bool, err error) {
	if err := cmp.Or(ctx.Err(), t.err); err != nil || t.refusal != "" {
		return Refuse(t.refusal), false, err
	}
	err = catchPanic(func() (err error) {
		result, err = t.entry.Run(ctx, t.convertedCall)
		return err
	})
	if broken, is := errors.AsType[*Panic](err); is {
		broken.IsExternal = t.entry.Foreign
	}
	if err == nil && !result.Recorded {
		result = result.withPrefix(note(t.ignored))
	}
	return result, true, err
}

// catchPanic keeps a panic of a tool, and a runtime.Goexit, from ending more than the
// call.
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

func (d *Dispatcher) aside() string {
	if d.TextBefore == nil {
		return ""
	}
	return d.Outputs.line(d.TextBefore())
}

// withPrefix returns r with words before everything.
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

// unknown returns an error that lists the tools offered to the model.
func (d *Dispatcher) unknown(call Call) string {
	names := d.Registry.Names()
	if len(d.Offered) > 0 {
		names = slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(d.Offered, name) })
	}
	return fmt.Sprintf("unsupported call: %s. The tools are: %s.", clip.Bytes(call.Name, 200), strings.Join(names, ", "))
}
