package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a tool made of what a test gives it. Without run, it answers with its input.
type fake struct {
	name        string
	parameters  string
	accepts     string // more than it tells of
	grammar     string
	builtin     bool // the API knows it
	foreign     bool
	scripts     bool
	mutates     bool
	mutatesCall func(Call) bool
	run         func(ctx context.Context, call Call) (Result, error)
}

func (f fake) tool() Tool {
	if f.run == nil {
		f.run = func(_ context.Context, call Call) (Result, error) { return Result{Output: call.Input}, nil }
	}
	tool := Tool{Spec: Spec{Name: f.name, Grammar: f.grammar}, Mutates: f.mutates, MutatesCall: f.mutatesCall, Foreign: f.foreign, Scripts: f.scripts, Run: f.run}
	switch {
	case f.builtin:
		tool.Spec.Builtin = f.name
	case f.parameters != "":
		tool.Spec.Parameters = json.RawMessage(f.parameters)
	case f.grammar == "":
		tool.Spec.Parameters = json.RawMessage(`{"type":"object"}`)
	}
	if f.accepts != "" {
		tool.Spec.Accepts = json.RawMessage(f.accepts)
	}
	return tool
}

func registry(fakes ...fake) *Registry {
	var all []Tool
	for _, f := range fakes {
		all = append(all, f.tool())
	}
	return New(all...)
}

// journal is an Observer that notes what it is told.
type journal struct {
	mu       sync.Mutex
	started  []string
	mutates  []bool   // of the calls that started
	lines    []string // of all
	finished map[string]Finished
	fail     error
}

func (j *journal) Started(s Started) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.started, j.mutates = append(j.started, s.Call.ID), append(j.mutates, s.Mutates)
	j.lines = append(j.lines, fmt.Sprintf("start %s %d of %d refused %t", s.Call.ID, s.Call.Number, s.Call.Caller, s.Refused))
	return j.fail
}

func (j *journal) Finished(f Finished) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.finished == nil {
		j.finished = make(map[string]Finished)
	}
	if _, twice := j.finished[f.Call.ID]; twice {
		panic("finished twice: " + f.Call.ID)
	}
	j.finished[f.Call.ID] = f
	j.lines = append(j.lines, "end "+f.Call.ID)
}

func dispatcher(fakes ...fake) *Dispatcher {
	return &Dispatcher{Registry: registry(fakes...), Outputs: new(Outputs)}
}

func calls(names ...string) []Call {
	calls := make([]Call, len(names))
	for i, name := range names {
		calls[i] = Call{ID: fmt.Sprint("call_", i), Name: name, Input: "{}"}
	}
	return calls
}

func TestReadingCallsRunConcurrentlyInOrder(t *testing.T) {
	const n = parallelCalls
	var inside sync.WaitGroup
	inside.Add(n)
	last := make(chan struct{})
	tool := fake{name: "look", run: func(_ context.Context, call Call) (Result, error) {
		inside.Done()
		inside.Wait() // all n calls are here at the same time
		if call.ID == "call_0" {
			<-last // the first ends last
		} else if call.ID == fmt.Sprint("call_", n-1) {
			defer close(last)
		}
		return Result{Output: call.ID}, nil
	}}
	seen := new(journal)
	d := dispatcher(tool)
	d.Observer = seen
	names := strings.Fields(strings.Repeat("look ", n))
	var got, want []string
	for i, result := range d.Dispatch(t.Context(), calls(names...)) {
		got, want = append(got, result.Output), append(want, fmt.Sprint("call_", i))
	}
	must.Same(t, want, got, "results")
	must.Same(t, want, seen.started, "started")
	must.Same(t, n, len(seen.finished), "calls finished")
}

func TestMutatesCallDecidesPerCall(t *testing.T) {
	var mu sync.Mutex
	var order []string
	run := func(_ context.Context, call Call) (Result, error) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, call.Input)
		return Result{}, nil
	}
	d := dispatcher(fake{name: "exec_command", mutatesCall: func(call Call) bool { return call.Input == `{"change":true}` }, run: run})
	seen := new(journal)
	d.Observer = seen
	made := calls("exec_command", "exec_command", "bash", "exec_command")
	made[2].Input = ` { "change" : true } `
	d.Dispatch(t.Context(), made)
	must.Same(t, []string{"{}", "{}", `{"change":true}`, "{}"}, order, "order")
	must.Same(t, []bool{false, false, true, false}, seen.mutates, "mutates")
}

func TestEveryCallGetsResult(t *testing.T) {
	broken := errors.New("disk on fire")
	boom := func(context.Context, Call) (Result, error) { panic("boom") }
	d := dispatcher(
		fake{name: "panics", run: boom},
		fake{name: "theirs", foreign: true, run: boom},
		fake{name: "leaves", run: func(context.Context, Call) (Result, error) { runtime.Goexit(); return Result{}, nil }},
		fake{name: "errs", run: func(context.Context, Call) (Result, error) { return Result{}, broken }},
		fake{name: "refuses", run: func(context.Context, Call) (Result, error) { return Refuse("no"), nil }},
		fake{name: "denied"},
	)
	must.Do(t, d.Registry.Restrict(nil, []string{"denied"}))
	seen := new(journal)
	d.Observer = seen
	for i, test := range []struct {
		tool  string
		words string
		fault bool
	}{
		{"panics", "panics failed: the tool crashed. This is a fault of agent-ci", true},
		{"theirs", "theirs failed: the tool crashed. This is a fault of the tool, not of the call; try another way", true},
		{"leaves", "leaves failed: the tool ended without a result", true},
		{"errs", "errs failed: disk on fire", true},
		{"refuses", "no", false},
		{"denied", "denied is switched off for this run by tools.deny", false},
		{"nothing", "unsupported call: nothing. The tools are: panics, theirs, leaves, errs, refuses.", false},
	} {
		t.Run(test.tool, func(t *testing.T) {
			id := fmt.Sprint("id", i)
			results := d.Dispatch(t.Context(), []Call{{ID: id, Name: test.tool, Input: "{}"}})
			if len(results) != 1 || !results[0].Failed || !strings.Contains(results[0].Output, test.words) {
				t.Errorf("got %+v, want one failed result with %q", results, test.words)
			}
			if fault := seen.finished[id].Fault; (fault != nil) != test.fault {
				t.Errorf("fault is %v, want one: %t", fault, test.fault)
			}
		})
	}
	var caught *Panic
	if !errors.As(seen.finished["id0"].Fault, &caught) || caught.Value != "boom" || len(caught.Stack) == 0 {
		t.Errorf("fault of a panic is %#v", seen.finished["id0"].Fault)
	}
}

func TestCancelledCallsGetResults(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ran := 0
	d := dispatcher(
		fake{name: "first", mutates: true, run: func(ctx context.Context, _ Call) (Result, error) {
			ran++
			cancel()
			return Result{}, ctx.Err()
		}},
	)
	results := d.Dispatch(ctx, calls("first", "first", "first"))
	must.Same(t, 1, ran, "calls ran")
	for i, result := range results {
		if !result.Failed || !strings.HasPrefix(result.Output, "aborted after ") {
			t.Errorf("result %d is %+v", i, result)
		}
	}
}

func TestUnrecordedCallDoesNotRun(t *testing.T) {
	ran := false
	d := dispatcher(fake{name: "change", mutates: true, run: func(context.Context, Call) (Result, error) {
		ran = true
		return Result{}, nil
	}})
	d.Observer = &journal{fail: errors.New("disk full")}
	result := d.Dispatch(t.Context(), calls("change"))[0]
	if ran || !result.Failed || !strings.Contains(result.Output, "disk full") {
		t.Errorf("ran: %t, result: %+v", ran, result)
	}
}

func TestCallStartsBeforeResponseEnds(t *testing.T) {
	looked := make(chan struct{})
	d := dispatcher(fake{name: "look", run: func(context.Context, Call) (Result, error) {
		close(looked)
		return Result{Output: "seen"}, nil
	}})
	b := d.Begin(t.Context())
	b.Start(calls("look")[0])
	<-looked // and nothing has said that the response is whole
	b.Commit()
	if results := b.Wait(); len(results) != 1 || results[0].Output != "seen" {
		t.Errorf("got %+v", results)
	}
}

func TestBrokenResponseChangesNothing(t *testing.T) {
	var mu sync.Mutex
	var ran []string
	looking, on := make(chan struct{}), make(chan struct{})
	run := func(_ context.Context, call Call) (Result, error) {
		mu.Lock()
		ran = append(ran, call.ID)
		mu.Unlock()
		if call.ID == "call_0" {
			close(looking)
			<-on
		}
		return Result{Output: call.ID}, nil
	}
	d := dispatcher(fake{name: "look", run: run}, fake{name: "change", mutates: true, run: run})
	seen := new(journal)
	d.Observer = seen
	b := d.Begin(t.Context())
	for _, call := range calls("look", "change", "look", "change") {
		b.Start(call)
	}
	<-looking
	must.Same(t, 1, b.Discard())
	close(on)
	results := b.Wait()
	if len(results) != 1 || results[0].Output != "call_0" {
		t.Errorf("got %+v, want the result of the one call that ran", results)
	}
	want := []string{"call_0"}
	must.Same(t, want, ran, "ran")
	must.Same(t, want, seen.started, "started")
	must.Same(t, 1, len(seen.finished), "finished")
}

func TestDiscardKeepsStartedCallsContiguous(t *testing.T) {
	const n = 3 * parallelCalls // more than run at once
	for range 50 {
		d := dispatcher(fake{name: "look"})
		seen := new(journal)
		d.Observer = seen
		b := d.Begin(t.Context())
		for _, call := range calls(strings.Fields(strings.Repeat("look ", n))...) {
			b.Start(call)
		}
		started := b.Discard()
		results := b.Wait()
		if len(results) != started || len(seen.started) != started || len(seen.finished) != started {
			t.Fatalf("%d started, %d results, told %d and %d", started, len(results), len(seen.started), len(seen.finished))
		}
		for i, id := range seen.started {
			if id != fmt.Sprint("call_", i) {
				t.Fatalf("call %d that started is %s", i, id)
			}
		}
	}
}

func TestCallsSharingIDGetOwnResults(t *testing.T) {
	d := dispatcher(fake{name: "look"})
	made := []Call{{ID: "same", Name: "look", Input: `{"n":1}`}, {ID: "same", Name: "look", Input: `{"n":2}`}}
	results := d.Dispatch(t.Context(), made)
	if len(results) != 2 || results[0].Output != `{"n":1}` || results[1].Output != `{"n":2}` {
		t.Errorf("got %+v", results)
	}
}
