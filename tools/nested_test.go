package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
)

// scripted is a dispatcher with a tool whose calls run script, and the events that it told of.
func scripted(script func(ctx context.Context, calls *ScriptCalls) Result, others ...fake) (*Dispatcher, *journal) {
	told := new(journal)
	d := dispatcher(append(others, fake{name: "script", grammar: "start: /.+/", scripts: true, run: func(ctx context.Context, _ Call) (Result, error) {
		return script(ctx, ScriptCallsOf(ctx)), nil
	}})...)
	d.Observer = told
	return d, told
}

func TestScriptCallsReadTogetherWriteAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		now, most, writing := 0, 0, false
		work := func(writes bool) func(context.Context, Call) (Result, error) {
			return func(context.Context, Call) (Result, error) {
				mu.Lock()
				now++
				if most = max(most, now); writing || writes && now > 1 {
					t.Error("a call that writes did not run alone")
				}
				writing = writes
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				now, writing = now-1, false
				mu.Unlock()
				return Result{Output: "done"}, nil
			}
		}
		var order []string
		d, told := scripted(func(ctx context.Context, calls *ScriptCalls) Result {
			for i, name := range []string{"read", "read", "write", "read", "write"} {
				calls.Start(ctx, Call{Name: name, Input: "{}"}, func(Result) {
					mu.Lock()
					defer mu.Unlock()
					order = append(order, fmt.Sprint(i))
				})
			}
			calls.Wait()
			return Result{Output: "all"}
		}, fake{name: "read", run: work(false)}, fake{name: "write", mutates: true, run: work(true)})
		began := time.Now()
		d.Dispatch(t.Context(), []Call{{ID: "c", Number: 7, Name: "script", Input: "x", Form: Freeform}, {ID: "d", Number: 8, Name: "write", Input: "{}"}})
		if took := time.Since(began); most != 2 || took < 4*time.Second || took > 6*time.Second {
			t.Errorf("%d calls ran at once, and all took %s", most, took)
		}
		if got := strings.Join(order, ""); len(got) != 5 || got[2:] != "234" {
			t.Errorf("the calls ended in the order %s", got)
		}
		must.Same(t, true, slices.Contains(told.lines, "start c.3 3 of 7 refused false"), "told of", told.lines)
	})
}

// A script may change anything: like a call that mutates, it runs alone among the calls of its answer, in their order.
func TestScriptRunsAloneInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(context.Context, Call) (Result, error) { time.Sleep(time.Second); return Result{}, nil }
		d, told := scripted(func(ctx context.Context, calls *ScriptCalls) Result {
			time.Sleep(time.Second)
			calls.Start(ctx, Call{Name: "write", Input: "{}"}, func(Result) {})
			calls.Wait()
			return Result{}
		}, fake{name: "read", run: slow}, fake{name: "write", mutates: true, run: slow})
		began := time.Now()
		d.Dispatch(t.Context(), []Call{
			{ID: "a", Name: "read", Input: "{}"},
			{ID: "b", Name: "script", Input: "x", Form: Freeform},
			{ID: "c", Name: "read", Input: "{}"},
			{ID: "d", Name: "script", Input: "x", Form: Freeform},
			{ID: "e", Name: "write", Input: "{}"},
			{ID: "f", Name: "read", Input: "{}"},
			{ID: "g", Name: "write", Input: "{}"},
		})
		var ended []string
		for _, line := range told.lines {
			if id, is := strings.CutPrefix(line, "end "); is {
				ended = append(ended, id)
			}
		}
		if got, took := strings.Join(ended, " "), time.Since(began); got != "a b.1 b c d.1 d e f g" || took != 9*time.Second {
			t.Errorf("the calls ended in the order %s after %s", got, took)
		}
	})
}

func TestScriptCallObjectHoldsRedactedOutput(t *testing.T) {
	ran := fake{name: "run", run: func(context.Context, Call) (Result, error) {
		printed := &Printed{head: []byte("the secret"), bytes: 10}
		return Result{Output: "Exit code: 0\n", Printed: printed, Object: map[string]any{"exit_code": 0, "note": []any{"a secret"}}}, nil
	}}
	var got Result
	d, _ := scripted(func(ctx context.Context, calls *ScriptCalls) Result {
		calls.Start(ctx, Call{Name: "run", Input: "{}"}, func(r Result) { got = r })
		calls.Wait()
		return Result{Output: "head", Parts: []Part{{Text: "one secret"}, {Image: &Image{}}, {Text: "two"}}}
	}, ran)
	d.Outputs.Redact = func(text string) string { return strings.ReplaceAll(text, "secret", "[gone]") }
	results := d.Dispatch(t.Context(), []Call{{ID: "c", Number: 1, Name: "script", Input: "x", Form: Freeform}})
	must.Same(t, "Exit code: 0\nthe [gone]", got.Output, "the script")
	must.Same(t, "map[exit_code:0 note:[a [gone]] output:the [gone]]", fmt.Sprint(got.Object), "the script")
	if r := results[0]; r.Output != "head\none [gone]\ntwo" || len(r.Parts) != 4 || r.Parts[0].Text != "head" || r.Parts[1].Text != "one [gone]" {
		t.Errorf("the model got %+v", r)
	}
}

func TestScriptOutputCutCountsLines(t *testing.T) {
	d, _ := scripted(func(context.Context, *ScriptCalls) Result {
		r := Result{Output: "head", Budget: 5}
		for i := range 30 {
			r.Parts = append(r.Parts, Part{Text: fmt.Sprintf("line %d", i)})
		}
		return r
	})
	got := d.Dispatch(t.Context(), []Call{{ID: "c", Number: 1, Name: "script", Input: "x", Form: Freeform}})[0]
	if want := "head\nWarning: truncated output (original token count: 58)\nTotal output lines: 30\n\nline 0\n"; !strings.HasPrefix(got.Output, want) || len(got.Parts) != 2 {
		t.Errorf("got %d parts of %q", len(got.Parts), got.Output)
	}
}

func TestRefusesNestedScriptsAndExcessCalls(t *testing.T) {
	read := fake{name: "read", run: func(context.Context, Call) (Result, error) { return Result{Output: "read"}, nil }}
	var got []string
	d, _ := scripted(func(ctx context.Context, calls *ScriptCalls) Result {
		for _, name := range []string{"script", "read", "read", "nothing"} {
			calls.Start(ctx, Call{Name: name, Input: "{}"}, func(r Result) { got = append(got, r.Output) })
			calls.Wait()
		}
		return Result{}
	}, read)
	left := 1
	d.CountScriptCall = func() string {
		if left--; left < 0 {
			return "used up"
		}
		return ""
	}
	d.Dispatch(t.Context(), []Call{{ID: "c", Number: 1, Name: "script", Input: "x", Form: Freeform}})
	if len(got) != 4 || !strings.Contains(got[0], "cannot be called from a script") || got[1] != "read" || got[2] != "used up" || got[3] != "used up" {
		t.Errorf("the script got %q", got)
	}
}
