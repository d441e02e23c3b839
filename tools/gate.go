package tools

import (
	"context"
	"slices"
	"strings"
)

// Gate decides about calls before and after they run. It is called concurrently. It does not see calls that are refused
// anyway.
type Gate interface {
	// Before decides about a call that is about to run. To change its input, it calls convert with the new input. The
	// call runs with the last one.
	Before(ctx context.Context, tool string, call Call, convert ConvertInput) Verdict
	// After returns the result for the model. completeOutput returns the complete output of a shortened one, and
	// mayReadComplete reports whether the model may read that, too. After is called even after cancellation.
	After(ctx context.Context, tool string, call Call, result Result, completeOutput func() (string, error)) (reviewed Result, mayReadComplete bool)
}

// ConvertInput returns the call with another input, which is checked like the model's. valid is false if the input is
// refused. The model then gets that refusal.
type ConvertInput func(input string) (converted Call, valid bool)

// Verdict is a Gate's decision. With the zero value the call runs unchanged.
type Verdict struct {
	Refusal    string // tells the model why the call does not run, or ""
	TextBefore string // text for the model before the output
}

// askGateBefore asks the gate about a call. It returns the call to run, which may be refused or have another input, and
// a text to put before its output.
func (d *Dispatcher) askGateBefore(ctx context.Context, t callTarget) (toRun callTarget, textBefore string) {
	if d.Gate == nil || ctx.Err() != nil || !t.canRun() {
		return t, ""
	}
	toRun = t
	verdict := d.Gate.Before(ctx, t.Tool, t.convertedCall, func(input string) (Call, bool) {
		toRun = d.withInput(t, input)
		return toRun.convertedCall, toRun.canRun()
	})
	if verdict.Refusal != "" {
		toRun.refusal = verdict.Refusal
	}
	return toRun, d.Outputs.cleanLine(verdict.TextBefore)
}

// askGateAfter asks the gate about the result of a call, and returns the result for the model. ran is false for a call
// that did not run, which the gate does not see.
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

// withGateResult returns r, a result whose Output a gate may have changed, with Commands, Parts and Object adapted to it.
// before is the result before the gate. If the gate only appended text, so does withGateResult. Otherwise the new Output
// becomes that of the first command, the other commands get none, and Parts and Object are dropped.
func (r Result) withGateResult(before Result) Result {
	appended, onlyAppended := strings.CutPrefix(r.Output, before.Output)
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

// withAppended returns the result after a gate has appended text to Output: it adds text to Commands, Parts or Object,
// too. It changes an Object that is a map in place.
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
		if output, isText := object["output"].(string); isText {
			object["output"] = output + text
		}
	case string:
		r.Object = object + text
	}
	return r
}

// withInput returns a call with another input, which is checked like the model's. It refuses an input that makes a call
// mutating, because the call may be running in parallel to others.
func (d *Dispatcher) withInput(original callTarget, input string) callTarget {
	call := original.convertedCall
	call.Name, call.Input = original.Tool, input
	rewritten := d.resolveTarget(call)
	rewritten.Call, rewritten.Offered = original.Call, original.Offered
	if rewritten.canRun() && rewritten.Mutates && !original.Mutates {
		rewritten.refusal = "Not run: a hook rewrote the call into one that changes files, which the call did not do before."
	}
	if rewritten.refusal != "" && rewritten.refusal != original.refusal {
		rewritten.refusal = "A hook rewrote the call, and the rewritten one is refused: " + rewritten.refusal
	}
	return rewritten
}

type callKey struct{}

// WithCall returns a context that contains the call for CallOf.
func WithCall(ctx context.Context, call Call) context.Context {
	return context.WithValue(ctx, callKey{}, call)
}

// CallOf returns the call in a context, as the model wrote it. known is false if there is none.
func CallOf(ctx context.Context) (call Call, known bool) {
	call, known = ctx.Value(callKey{}).(Call)
	return call, known
}
