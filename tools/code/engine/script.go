package engine

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"modernc.org/quickjs"
	"modernc.org/quickjs/intl"

	"github.com/agent-ci/agent-ci/tools/script/message"
)

//go:embed prelude.js
var prelude string

// memory bounds the memory of a script, in bytes.
const memory = 256 << 20

// main is the script's name in stacks.
const main = "exec_main.mjs"

// script is a script with its interpreter. It is not safe for concurrent use.
type script struct {
	vm     *quickjs.VM
	enter  quickjs.Value // the prelude's function that starts and resumes the script
	outbox *outbox
	source string
	loaded bool

	stored   map[string]string
	held     int // bytes of stored
	items    int // number of shown items
	shown    int // bytes of shown items
	underWay int // number of calls without a result
	timers   timers
	busy     time.Duration // longest time of computing without waiting
	computed time.Duration // total computing time so far
	ended    bool
}

// newScript prepares an interpreter before the script is known.
func newScript(o *outbox) (*script, error) {
	vm, err := quickjs.NewVM()
	if err != nil {
		return nil, err
	}
	s := &script{vm: vm, outbox: o, stored: map[string]string{}}
	vm.SetCanBlock(false)
	vm.SetMemoryLimit(memory)
	vm.SetModuleLoader(s.load, s.resolve)
	if err := intl.Register(vm); err != nil {
		return nil, err
	}
	for name, function := range s.functions() {
		if err := vm.RegisterHostFunc("agent_"+name, function); err != nil {
			return nil, err
		}
	}
	limits, err := json.Marshal(map[string]int{
		"shown": message.MaxShown, "input": message.MaxInput, "inputs": message.MaxInputs, "calls": message.MaxCalls, "value": message.LargestValue, "timers": message.MaxTimers,
	})
	if err != nil {
		return nil, err
	}
	if _, err := vm.Eval(fmt.Sprintf("globalThis.agent_limits = %q; 0", limits), quickjs.EvalGlobal); err != nil {
		return nil, err
	}
	s.enter, err = vm.EvalValue(prelude, quickjs.EvalGlobal)
	return s, err
}

// resolve permits one import: the prelude imports the script itself.
func (s *script) resolve(_ *quickjs.VM, _, name string) (string, error) {
	if s.loaded || name != main {
		return "", errors.New("nothing can be imported in a script; what there is to call is in tools")
	}
	s.loaded = true
	return name, nil
}

func (s *script) load(*quickjs.VM, string) (string, error) { return s.source, nil }

// functions returns the prelude's host functions.
func (s *script) functions() map[string]quickjs.HostFunc {
	return map[string]quickjs.HostFunc{
		"call": s.call, "item": s.item, "stored": s.recall, "keep": s.keep, "timer": s.setTimer, "untimer": s.clearTimer,
		"yields": func([]any) (any, error) {
			s.outbox.add(maxGathered, func(r *message.Report) { r.Yield = true })
			return nil, nil
		},
		"ends":   func([]any) (any, error) { panic(stopped{}) },
		"floods": func([]any) (any, error) { panic(flood()) },
		"fails": func(arguments []any) (any, error) {
			panic(stopped{message.End{Failed: true, Error: describeError(argument[string](arguments, 0), argument[string](arguments, 1), s.source)}})
		},
	}
}

// argument returns argument i of a host function, or the zero value if it has another type.
func argument[T any](arguments []any, i int) T {
	var none T
	if i >= len(arguments) {
		return none
	}
	value, is := arguments[i].(T)
	if !is {
		return none
	}
	return value
}

// number returns argument i of a host function as a number, or 0 if it has another type.
func number(arguments []any, i int) float64 {
	if i < len(arguments) {
		switch n := arguments[i].(type) {
		case int:
			return float64(n)
		case float64:
			return n
		}
	}
	return 0
}

// call reports a call of a tool. The result arrives later, by settle.
func (s *script) call(arguments []any) (any, error) {
	c := message.Call{
		ID: int(number(arguments, 0)), Tool: argument[string](arguments, 1), Input: argument[string](arguments, 2), Text: argument[bool](arguments, 3),
	}
	if s.underWay++; s.underWay > message.MaxCalls || len(c.Input) > message.MaxInput {
		panic(stopped{message.End{Failed: true, Error: "Error: the script made too many or too large calls at once."}})
	}
	s.outbox.add(len(c.Input), func(r *message.Report) { r.Calls = append(r.Calls, c) })
	return nil, nil
}

// item reports an item that the script shows, and ends a script that shows too much.
func (s *script) item(arguments []any) (any, error) {
	i := message.Item{Kind: message.Kind(argument[string](arguments, 0)), Value: argument[string](arguments, 1)}
	s.items++
	if s.shown += len(i.Value); s.items > message.MaxItems || s.shown > message.MaxShown {
		panic(flood())
	}
	s.outbox.add(len(i.Value), func(r *message.Report) { r.Items = append(r.Items, i) })
	return nil, nil
}

// flood returns the panic value that ends a script with too much output.
func flood() stopped {
	return stopped{message.End{Failed: true, Error: fmt.Sprintf("Error: the script showed more than %d items or %d MiB, and was ended. Show less: filter, count, or show the part that matters.",
		message.MaxItems, message.MaxShown>>20)}}
}

func (s *script) recall(arguments []any) (any, error) {
	value, there := s.stored[argument[string](arguments, 0)]
	if !there {
		return nil, nil
	}
	return value, nil
}

// keep stores a value. If a limit forbids that, it returns the reason as a string for the prelude.
func (s *script) keep(arguments []any) (any, error) {
	key, value := argument[string](arguments, 0), argument[string](arguments, 1)
	held := s.held + len(value)
	if old, there := s.stored[key]; there {
		held -= len(old)
	} else {
		held += len(key)
	}
	switch {
	case len(value) > message.LargestValue:
		return fmt.Sprintf("the value has more than %d bytes as JSON", message.LargestValue), nil
	case held > message.MaxStored:
		return fmt.Sprintf("all values and keys together have more than %d bytes; store null or something shorter under keys that are not needed", message.MaxStored), nil
	}
	s.held, s.stored[key] = held, value
	s.outbox.add(len(key)+len(value), func(r *message.Report) {
		if r.Stored == nil {
			r.Stored = map[string]string{}
		}
		r.Stored[key] = value
	})
	return nil, nil
}

// maxDelay is the longest delay of a timer in milliseconds: 24 days, as in other engines.
const maxDelay = 1<<31 - 1

func (s *script) setTimer(arguments []any) (any, error) {
	delay := time.Duration(min(max(number(arguments, 1), 0), maxDelay) * float64(time.Millisecond))
	s.timers.set(int(number(arguments, 0)), time.Now().Add(delay))
	if len(s.timers) > message.MaxTimers {
		panic(stopped{message.End{Failed: true, Error: "Error: the script set too many timers."}})
	}
	return nil, nil
}

func (s *script) clearTimer(arguments []any) (any, error) {
	s.timers.clear(int(number(arguments, 0)))
	return nil, nil
}

// begin starts the script.
func (s *script) begin(run message.Run) {
	s.source = run.Source
	for key, value := range run.Stored {
		s.stored[key] = value
		s.held += len(key) + len(value)
	}
	names := make([]string, len(run.Tools))
	for i, tool := range run.Tools {
		names[i] = tool.Name
	}
	s.goOn("start", map[string]any{"names": names, "missing": missing(run.Source, names), "all": append([]message.Tool{}, run.Tools...)}) // a list, even if it is empty
}

// missing returns the methods of tools that a script calls and that names does not contain. It omits a
// name that the script also mentions otherwise, for example to test whether the tool exists.
func missing(source string, names []string) []string {
	all := []string{}
	calls := map[string]int{}
	for _, call := range made().method.FindAllStringSubmatch(source, -1) {
		calls[call[1]]++
	}
	for name, count := range calls {
		if slices.Contains(names, name) {
			continue
		}
		mentions := regexp.MustCompile(`(?:^|[^\w$])`+regexp.QuoteMeta(name)+`(?:$|[^\w$])`).FindAllStringIndex(source, -1)
		if len(mentions) == count {
			all = append(all, name)
		}
	}
	return all
}

// settle continues with results of calls.
func (s *script) settle(settled []message.Settled) {
	s.underWay -= len(settled)
	s.goOn("settle", settled)
}

// fire continues with due timers.
func (s *script) fire() { s.goOn("fire", s.timers.take(time.Now())) }

// goOn calls the prelude to start or resume the script. given is passed to it as JSON.
func (s *script) goOn(kind string, given any) {
	var text strings.Builder
	if err := message.Write(&text, given); err != nil {
		s.end(message.End{Failed: true, Error: err.Error()})
		return
	}
	s.turn(func() error {
		_, err := s.enter.Call(quickjs.UndefinedValue, kind, text.String())
		return err
	})
}

func (s *script) end(end message.End) {
	s.ended = true
	s.outbox.end(end)
}
