package engine

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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

// memory is the maximum memory of a script, in bytes.
const memory = 256 << 20

// main is the script's name in stacks.
const main = "exec_main.mjs"

// script is a script with its interpreter. It is not safe for concurrent use.
type script struct {
	vm       *quickjs.VM
	prelude  quickjs.Value // the prelude's function that starts and resumes the script
	outbox   *outbox
	source   string
	imported bool

	stored       map[string]string
	storedBytes  int // bytes of stored
	shownItems   int // number of shown items
	shownBytes   int // bytes of shown items
	pendingCalls int // number of calls without a result
	timers       timers
	busyLimit    time.Duration // longest time of computing without waiting
	computed     time.Duration // total computing time so far
	ended        bool
}

// newScript returns a script with a prepared interpreter. begin sets the source.
func newScript(o *outbox) (*script, error) {
	vm, err := quickjs.NewVM()
	if err != nil {
		return nil, err
	}
	s := &script{vm: vm, outbox: o, stored: map[string]string{}}
	vm.SetCanBlock(false)
	vm.SetMemoryLimit(memory)
	vm.SetModuleLoader(s.loadModule, s.resolveModule)
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
	s.prelude, err = vm.EvalValue(prelude, quickjs.EvalGlobal)
	return s, err
}

// resolveModule permits a single import, by which the prelude imports the script itself.
func (s *script) resolveModule(_ *quickjs.VM, _, name string) (string, error) {
	if s.imported || name != main {
		return "", errors.New("nothing can be imported in a script; what there is to call is in tools")
	}
	s.imported = true
	return name, nil
}

// loadModule returns the source of the only module, the script.
func (s *script) loadModule(*quickjs.VM, string) (string, error) { return s.source, nil }

// functions returns the Go functions that the prelude can call, by name.
func (s *script) functions() map[string]quickjs.HostFunc {
	return map[string]quickjs.HostFunc{
		"call": s.reportCall, "item": s.showItem, "stored": s.loadStored, "keep": s.storeValue, "timer": s.setTimer, "untimer": s.clearTimer,
		"yields": func([]any) (any, error) {
			s.outbox.add(maxGathered, func(r *message.Report) { r.Yield = true })
			return nil, nil
		},
		"ends":   func([]any) (any, error) { panic(scriptEnd{}) },
		"floods": func([]any) (any, error) { panic(tooMuchOutput()) },
		"fails": func(arguments []any) (any, error) {
			panic(scriptEnd{message.End{Failed: true, Error: describeError(argumentAs[string](arguments, 0), argumentAs[string](arguments, 1), s.source)}})
		},
	}
}

// argumentAs returns argument i of a host function. If it is missing or has another type, it returns the zero value.
func argumentAs[T any](arguments []any, i int) (value T) {
	if i < len(arguments) {
		value, _ = arguments[i].(T)
	}
	return value
}

// numberArgument returns argument i of a host function, or 0 if it is no number.
func numberArgument(arguments []any, i int) float64 {
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

// reportCall reports a tool call by the script to the host. The result arrives later, in serve.
func (s *script) reportCall(arguments []any) (any, error) {
	c := message.Call{
		ID: int(numberArgument(arguments, 0)), Tool: argumentAs[string](arguments, 1), Input: argumentAs[string](arguments, 2), Text: argumentAs[bool](arguments, 3),
	}
	s.pendingCalls++
	if s.pendingCalls > message.MaxCalls || len(c.Input) > message.MaxInput {
		panic(scriptEnd{message.End{Failed: true, Error: "Error: the script made too many or too large calls at once."}})
	}
	s.outbox.add(len(c.Input), func(r *message.Report) { r.Calls = append(r.Calls, c) })
	return nil, nil
}

// showItem reports a text or image that the script shows. It ends a script that shows too much.
func (s *script) showItem(arguments []any) (any, error) {
	i := message.Item{Kind: message.Kind(argumentAs[string](arguments, 0)), Value: argumentAs[string](arguments, 1)}
	s.shownItems++
	s.shownBytes += len(i.Value)
	if s.shownItems > message.MaxItems || s.shownBytes > message.MaxShown {
		panic(tooMuchOutput())
	}
	s.outbox.add(len(i.Value), func(r *message.Report) { r.Items = append(r.Items, i) })
	return nil, nil
}

// tooMuchOutput returns the panic value that ends a script with too much output.
func tooMuchOutput() scriptEnd {
	return scriptEnd{message.End{Failed: true, Error: fmt.Sprintf("Error: the script showed more than %d items or %d MiB, and was ended. Show less: filter, count, or show the part that matters.",
		message.MaxItems, message.MaxShown>>20)}}
}

// loadStored returns the JSON stored under a key, or nil.
func (s *script) loadStored(arguments []any) (any, error) {
	value, exists := s.stored[argumentAs[string](arguments, 0)]
	if !exists {
		return nil, nil
	}
	return value, nil
}

// storeValue stores a JSON value under a key and reports it to the host. If a limit is exceeded, it returns the reason to
// the prelude as a string.
func (s *script) storeValue(arguments []any) (any, error) {
	key, value := argumentAs[string](arguments, 0), argumentAs[string](arguments, 1)
	newBytes := message.StoredBytes(s.stored, s.storedBytes, key, value)
	switch {
	case len(value) > message.LargestValue:
		return fmt.Sprintf("the value has more than %d bytes as JSON", message.LargestValue), nil
	case newBytes > message.MaxStored:
		return fmt.Sprintf("all values and keys together have more than %d bytes; store null or something shorter under keys that are not needed", message.MaxStored), nil
	}
	s.storedBytes, s.stored[key] = newBytes, value
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

// setTimer sets a timer. Its arguments are an ID and a delay in milliseconds.
func (s *script) setTimer(arguments []any) (any, error) {
	delay := time.Duration(min(max(numberArgument(arguments, 1), 0), maxDelay) * float64(time.Millisecond))
	s.timers.set(int(numberArgument(arguments, 0)), time.Now().Add(delay))
	if len(s.timers) > message.MaxTimers {
		panic(scriptEnd{message.End{Failed: true, Error: "Error: the script set too many timers."}})
	}
	return nil, nil
}

// clearTimer removes the timer with an ID.
func (s *script) clearTimer(arguments []any) (any, error) {
	s.timers.clear(int(numberArgument(arguments, 0)))
	return nil, nil
}

// begin starts the script in run.
func (s *script) begin(run message.Run) {
	s.source = run.Source
	for key, value := range run.Stored {
		s.stored[key] = value
		s.storedBytes += len(key) + len(value)
	}
	names := make([]string, len(run.Tools))
	for i, tool := range run.Tools {
		names[i] = tool.Name
	}
	s.resume("start", map[string]any{"names": names, "missing": unknownMethods(run.Source, names), "all": append([]message.Tool{}, run.Tools...)}) // a list, even if it is empty
}

// unknownMethods returns the methods of tools that a script calls but that do not exist. It leaves out a name that the
// script also mentions otherwise, for example to test whether the tool exists. names are the existing methods.
func unknownMethods(source string, names []string) []string {
	all := []string{}
	calls := map[string]int{}
	for _, call := range regexps().method.FindAllStringSubmatch(source, -1) {
		calls[call[1]]++
	}
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		if slices.Contains(names, name) {
			continue
		}
		mentions := regexp.MustCompile(`(?:^|[^\w$])`+regexp.QuoteMeta(name)+`(?:$|[^\w$])`).FindAllStringIndex(source, -1)
		if len(mentions) == calls[name] {
			all = append(all, name)
		}
	}
	return all
}

// resume calls the prelude's function with an event, such as "start", and data as JSON. It runs the script until it
// waits or ends.
func (s *script) resume(event string, data any) {
	var text strings.Builder
	if err := message.Write(&text, data); err != nil {
		s.end(message.End{Failed: true, Error: err.Error()})
		return
	}
	s.computeUntilWaiting(func() error {
		_, err := s.prelude.Call(quickjs.UndefinedValue, event, text.String())
		return err
	})
}

// end reports the end of the script.
func (s *script) end(end message.End) {
	s.ended = true
	s.outbox.end(end)
}
