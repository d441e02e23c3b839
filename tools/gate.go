package tools

import (
	"context"
	"slices"
	"strings"
)

// Gate decides about calls before and after they run. It is called concurrently. It does not see calls that are refused
// anyway.
type Gate interface {
	// Before decides about a call that is about to run. If it passes inputs to fit, the call runs with the last of them.
	Before(ctx context.Context, tool string, call Call, fit ConvertInput) Verdict
	// After returns the result for the model. let reports whether the model may also read the complete output of a
	// shortened one, which whole returns. It is called even after cancellation.
	After(ctx context.Context, tool string, call Call, result Result, whole func() (string, error)) (made Result, let bool)
}

// ConvertInput returns the call with another input, which is checked like the model's. It returns false if the input is
// refused. The model then gets that refusal.
type ConvertInput func(input string) (Call, bool)

// Verdict is a Gate's decision. With the zero value the call runs unchanged.
type Verdict struct {
	Refusal    string // tells the model why the call does not run, or ""
	TextBefore string // text for the model before the output
}

// askGateBefore returns the call to run and the text before its output.
func (d *Dispatcher) askGateBefore(ctx context.Context, t callTarget) (callTarget, string) {
	if d.Gate == nil || ctx.Err() != nil || !t.canRun() {
		return t, ""
	}
	toRun := t
	verdict := d.Gate.Before(ctx, t.Tool, t.convertedCall, func(input string) (Call, bool) {
		toRun = d.withInput(t, input)
		return toRun.convertedCall, toRun.canRun()
	})
	if verdict.Refusal != "" {
		toRun.refusal = verdict.Refusal
	}
	return toRun, d.Outputs.cleanLine(verdict.TextBefore)
}

// askGateAfter returns the result of a call after the gate has seen it.
func (d *Dispatcher) askGateAfter(ctx context.Context, t callTarget, ran bool, result Result, uncut UncutOutput) (Result, UncutOutput) {
	mayReadUncut := true
	if ran && d.Gate != nil {
		var fromGate Result
		fromGate, mayReadUncut = d.Gate.After(ctx, t.Tool, t.convertedCall, result, func() (string, error) {
			if len(uncut.parts) == 0 || !uncut.Truncated {
				return result.Output, nil
			}
			return d.Outputs.readUncut(uncut)
		})
		if !result.Recorded {
			result = fromGate.withGateResult(result)
		}
	}
	return result, d.Outputs.releaseOrDrop(uncut, mayReadUncut)
}

// withGateResult updates all forms of the result after a gate changed its output. was is the result before.
func (r Result) withGateResult(was Result) Result {
	appended, onlyAppended := strings.CutPrefix(r.Output, was.Output)
	switch {
	case onlyAppended && appended == "":
		return r
	case onlyAppended:
		return r.withAppended(appended)
	}
	r.Commands = slices.Clone(r.Commands)
	for i := range r.Commands {
		r.Commands[i].Output = ""
	}
	if len(r.Commands) > 0 {
		r.Commands[0].Output = r.Output
	}
	r.Parts, r.Object = nil, nil
	return r
}

// withAppended adds a text that a gate has appended to Output to the other forms of the result.
func (r Result) withAppended(text string) Result {
	if last := len(r.Commands) - 1; last >= 0 {
		r.Commands = slices.Clone(r.Commands)
		r.Commands[last].Output = strings.TrimSuffix(r.Commands[last].Output, "\n") + "\n" + strings.TrimPrefix(text, "\n")
	}
	if len(r.Parts) > 0 {
		r.Parts = append(r.Parts, Part{Text: strings.TrimPrefix(text, "\n")})
		return r
	}
	switch object := r.Object.(type) {
	case map[string]any:
		if output, ok := object["output"].(string); ok {
			object["output"] = output + text
		}
	case string:
		r.Object = object + text
	}
	return r
}

// withInput returns a call with another input, which is checked like the model's. It refuses an input that turns a call
// which may run in parallel into a mutating one.
func (d *Dispatcher) withInput(was callTarget, input string) callTarget {
	call := was.convertedCall
	call.Name, call.Input = was.Tool, input
	now := d.target(call)
	now.Call, now.Offered = was.Call, was.Offered
	if now.canRun() && now.Mutates && !was.Mutates {
		now.refusal = "Not run: a hook rewrote the call into one that changes files, which the call did not do before."
	}
	if now.refusal != "" && now.refusal != was.refusal {
		now.refusal = "A hook rewrote the call, and the rewritten one is refused: " + now.refusal
	}
	return now
}

type callKey struct{}

// WithCall returns a context that CallOf finds the call in.
func WithCall(ctx context.Context, call Call) context.Context {
	return context.WithValue(ctx, callKey{}, call)
}

// CallOf returns the call that a context belongs to, as the model wrote it.
func CallOf(ctx context.Context) (Call, bool) {
	call, ok := ctx.Value(callKey{}).(Call)
	return call, ok
}
