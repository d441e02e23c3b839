package tools

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// gate is a Gate that does what a test says.
type gate struct {
	before func(tool string, call Call, fit ConvertInput) Verdict
	after  func(result Result) Result
}

func (g gate) Before(_ context.Context, tool string, call Call, fit ConvertInput) Verdict {
	return g.before(tool, call, fit)
}

func (g gate) After(_ context.Context, _ string, _ Call, result Result, _ func() (string, error)) (Result, bool) {
	if g.after == nil {
		return result, true
	}
	return g.after(result), true
}

func TestGateDecidesOnCalls(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"write":{"type":"boolean"}},"required":["path"],"additionalProperties":false}`)
	for _, test := range []struct {
		name    string
		verdict Verdict
		input   string // that replaces the call's; empty for none
		after   func(Result) Result
		want    string
		ran     bool
	}{
		{"as it is", Verdict{}, "", nil, `ran {"path":"a"}`, true},
		{"refused", Verdict{Refusal: "No."}, "", nil, "No.", false},
		{"rewritten", Verdict{}, `{"path":"b"}`, nil, `ran {"path":"b"}`, true},
		{"rewritten into what does not fit", Verdict{}, `{"other":1}`, nil, "A hook rewrote the call, and the rewritten one is refused: look: ", false},
		{"rewritten into what mutates", Verdict{}, `{"path":"b","write":true}`, nil, "rewrote the call into one that changes files", false},
		{"with words before", Verdict{TextBefore: "Mind the gap."}, "", nil, "Mind the gap.\nran", true},
		{"replaced", Verdict{}, "", func(r Result) Result { r.Output = "gone"; return r }, "gone", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			ran := false
			tool := Tool{
				Spec:        Spec{Name: "look", Parameters: schema},
				MutatesCall: func(call Call) bool { return strings.Contains(call.Input, "write") },
				Run: func(ctx context.Context, call Call) (Result, error) {
					ran = true
					if asked, ok := CallOf(ctx); !ok || asked.Input != `{"path":"a"}` {
						t.Errorf("the call that it is done for is %+v", asked)
					}
					return Result{Output: "ran " + call.Input}, nil
				},
			}
			d := &Dispatcher{Registry: New(tool), Outputs: &Outputs{}, Gate: gate{func(name string, _ Call, fit ConvertInput) Verdict {
				must.Same(t, "look", name, "it is asked about")
				if test.input != "" {
					fit(`{"path":"c","write":true}`) // what is fitted last counts
					fit(test.input)
				}
				return test.verdict
			}, test.after}}
			got := d.Dispatch(t.Context(), []Call{{Name: "look", Input: `{"path":"a"}`}})[0]
			if !strings.Contains(got.Output, test.want) || ran != test.ran || got.Failed == test.ran {
				t.Errorf("ran: %t, %+v", ran, got)
			}
		})
	}
}

func TestGateSkipsRefusedCalls(t *testing.T) {
	d := &Dispatcher{Registry: New(), Outputs: &Outputs{}, Gate: gate{before: func(string, Call, ConvertInput) Verdict {
		t.Error("it is asked")
		return Verdict{}
	}}}
	d.Dispatch(t.Context(), []Call{{Name: "nothing"}, {Name: "x", Refused: "No."}})
}
