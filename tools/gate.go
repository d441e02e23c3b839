package tools

import (
	"context"
	"slices"
	"strings"
)

// Gate is asked about calls before and after they run, from several goroutines. A call that
// is refused anyway is not shown to it.
type Gate interface {
	// Before judges a call that is about to run; tool is what answers it. The call is made with
	// what was last put to fit, if anything was.
	Before(ctx context.Context, tool string, call Call, fit Fit) Verdict
	// After gives what the model is to get of the result of a call, and says whether it may have
	// the whole of an output that was cut, too. whole gives that, as far as it is kept. It is
	// asked when the run was cancelled, too.
	After(ctx context.Context, tool string, call Call, result Result, whole func() (string, error)) (made Result, let bool)
}

// Fit makes a call with another input, checked and judged as the model's was. It is false where
// that is refused, which the dispatcher then tells the model.
type Fit func(input string) (Call, bool)

// Verdict is what becomes of a call; the zero value lets it run as it is.
type Verdict struct {
	Refusal string // why it is not run, in words for the model
	Aside   string // words for the model that stand before the output
}

// gated is what becomes of a call that is about to run, and the words that stand before its
// output.
func (d *Dispatcher) gated(ctx context.Context, t target) (target, string) {
	if d.Gate == nil || ctx.Err() != nil || t.err != nil || t.refusal != "" {
		return t, ""
	}
	now := t
	verdict := d.Gate.Before(ctx, t.Tool, t.ready, func(input string) (Call, bool) {
		now = d.rewritten(t, input)
		return now.ready, now.err == nil && now.refusal == ""
	})
	aside := ""
	if verdict.Aside != "" {
		aside = d.Outputs.clean(verdict.Aside) + "\n"
	}
	if verdict.Refusal != "" {
		now.refusal = verdict.Refusal
	}
	return now, aside
}

// judged is the result of a call as the gate leaves it.
func (d *Dispatcher) judged(ctx context.Context, t target, ran bool, result Result, whole Whole) (Result, Whole) {
	let := true
	if ran && d.Gate != nil {
		var made Result
		made, let = d.Gate.After(ctx, t.Tool, t.ready, result, func() (string, error) {
			if len(whole.parts) == 0 || !whole.Truncated {
				return result.Output, nil
			}
			return d.Outputs.whole(whole)
		})
		if !result.Recorded {
			result = made.replacing(result)
		}
	}
	return result, d.Outputs.settle(whole, let)
}

// replacing is what a gate made of a result, said in all ways in which the result says it.
func (r Result) replacing(was Result) Result {
	fields, _ := r.Object.(map[string]any)
	printed, isText := fields["output"].(string)
	words, isWords := r.Object.(string)
	behind, longer := strings.CutPrefix(r.Output, was.Output)
	r.Commands = slices.Clone(r.Commands)
	switch last := len(r.Commands) - 1; {
	case longer && behind == "":
		return r
	case last < 0:
	case longer:
		r.Commands[last].Output = strings.TrimSuffix(r.Commands[last].Output, "\n") + "\n" + strings.TrimPrefix(behind, "\n")
	default:
		for i := range r.Commands {
			r.Commands[i].Output = ""
		}
		r.Commands[0].Output = r.Output
	}
	switch {
	case longer && len(r.Parts) > 0:
		r.Parts = append(r.Parts, Part{Text: strings.TrimPrefix(behind, "\n")})
	case longer && isText:
		fields["output"] = printed + behind
	case longer && isWords:
		r.Object = words + behind
	case longer: // the object says what it said
	default:
		r.Parts, r.Object = nil, nil
	}
	return r
}

// rewritten is a call with another input, judged as one of the model's. What was let to run
// beside others may not become one that runs alone.
func (d *Dispatcher) rewritten(was target, input string) target {
	call := was.ready
	call.Name, call.Input = was.Tool, input
	now := d.target(call)
	now.Call, now.Offered = was.Call, was.Offered
	if now.refusal == "" && now.err == nil && now.Mutates && !was.Mutates {
		now.refusal = "Not run: a hook rewrote the call into one that changes files, which the call did not do before."
	}
	if now.refusal != "" && now.refusal != was.refusal {
		now.refusal = "A hook rewrote the call, and the rewritten one is refused: " + now.refusal
	}
	return now
}

type callKey struct{}

// WithCall is ctx for what is done for a call.
func WithCall(ctx context.Context, call Call) context.Context {
	return context.WithValue(ctx, callKey{}, call)
}

// CallOf is the call, as the model wrote it, for which something is done; false for none.
func CallOf(ctx context.Context) (Call, bool) {
	call, ok := ctx.Value(callKey{}).(Call)
	return call, ok
}
