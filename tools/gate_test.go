package tools

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// gate is a Gate that does what a test says.
type gate struct {
	before func(tool string, call Call, fit Fit) Verdict
	after  func(result Result) Result
}

func (g gate) Before(_ context.Context, tool string, call Call, fit Fit) Verdict {
	return g.before(tool, call, fit)
}

func (g gate) After(_ context.Context, _ string, _ Call, result Result) Result {
	if g.after == nil {
		return result
	}
	return g.after(result)
}

func TestAGateDecidesOnCalls(t *testing.T) {
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
		{"with words before", Verdict{Aside: "Mind the gap."}, "", nil, "Mind the gap.\nran", true},
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
			d := &Dispatcher{Registry: New(tool), Outputs: &Outputs{}, Gate: gate{func(name string, _ Call, fit Fit) Verdict {
				if name != "look" {
					t.Errorf("it is asked about %s", name)
				}
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

func TestAGateIsNotAskedOfWhatIsRefused(t *testing.T) {
	d := &Dispatcher{Registry: New(), Outputs: &Outputs{}, Gate: gate{before: func(string, Call, Fit) Verdict {
		t.Error("it is asked")
		return Verdict{}
	}}}
	d.Dispatch(t.Context(), []Call{{Name: "nothing"}, {Name: "x", Refused: "No."}})
}

func TestAGateSeesWhatIsNotCutYet(t *testing.T) {
	kept := folder(t.TempDir())
	o := &Outputs{Budget: 10, Create: kept.Create, Hold: true, Redact: redactHunter}
	for _, lines := range []int{1_000, 1_000_000} {
		tool := Tool{Spec: Spec{Name: "look", Parameters: json.RawMessage(`{"type":"object"}`)}, Run: func(_ context.Context, call Call) (Result, error) {
			c := o.Capture(call.ID)
			_, _ = c.Write([]byte(strings.Repeat("0123456789\n", lines) + "hunter2\n"))
			return Result{Output: "header\n", Printed: c.Take()}, nil
		}}
		saw := ""
		d := &Dispatcher{Registry: New(tool), Outputs: o, Gate: gate{
			before: func(string, Call, Fit) Verdict { return Verdict{} },
			after: func(r Result) Result {
				saw = r.Text()
				return r.Withheld("gone")
			},
		}}
		if got := d.Dispatch(t.Context(), []Call{{ID: "c", Name: "look", Input: `{}`}})[0]; got.Output != "gone" {
			t.Errorf("%+v", got)
		}
		if !strings.HasPrefix(saw, "header\n0123") || strings.Contains(saw, "hunter2") || len(saw) < 10_000 {
			t.Errorf("it saw %d bytes: %.40q", len(saw), saw)
		}
		if files, _ := os.ReadDir(string(kept)); len(files) > 0 {
			t.Errorf("a file keeps what was withheld: %v", files)
		}
	}
}
