package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime/debug"
)

// mostChecks is how often schemas are applied to values for one call.
const mostChecks = 1_000_000

// prepareForeign is prepare for a tool from outside: its arguments mean what its own schema says.
// What fits the schema is handed on as the model wrote it, and only what does not fit is read as
// leniently as arguments of other tools.
func (t *target) prepareForeign(call Call) (err error) {
	defer func() { // the library was not made for schemas of strangers
		if value := recover(); value != nil {
			err = &Panic{Value: value, Stack: debug.Stack()}
		}
	}()
	e := t.entry
	arguments, problem := e.parse(call)
	if problem != "" {
		t.refusal = t.Tool + ": " + problem
		return nil
	}
	if !e.schema.affords(arguments) {
		t.refusal = t.Tool + ": " + tooMany
		return nil
	}
	if err := e.schema.compile(); err != nil {
		return fmt.Errorf("compile the tool's schema: %w", err)
	}
	call.Form = Function
	t.ready = call
	if e.schema.resolved.Validate(arguments) == nil {
		t.ready.Input, err = e.exactly(call.Input, arguments, 0)
		return err
	}
	needed, problem, err := e.schema.fit(arguments)
	if problem != "" || err != nil {
		if problem != "" {
			t.refusal = t.Tool + ": " + problem
		}
		return err
	}
	t.ready.Input, err = e.exactly(call.Input, arguments, needed)
	return err
}

// exactly writes arguments again, with all digits of their numbers: each name comes once then, so
// that whoever reads them next reads what was checked. They are read by as many leniences as
// they needed.
func (e *entry) exactly(input string, arguments map[string]any, needed int) (string, error) {
	var exact map[string]any
	decoder := json.NewDecoder(bytes.NewReader([]byte(input)))
	decoder.UseNumber()
	if decoder.Decode(&exact) != nil || exact == nil {
		exact = arguments // text that stands for the only argument, or nothing
	}
	for _, read := range leniences[:needed] {
		read(&e.schema, exact, true)
	}
	text, err := json.Marshal(exact)
	if err != nil {
		return "", fmt.Errorf("write arguments: %w", err)
	}
	return string(text), nil
}

// affords says whether a value can be checked in bounded time: schemas that refer to each other
// can multiply the work with each level of the value.
func (s *schema) affords(value any) bool {
	return s.compile() != nil || affords(s.document, value, mostChecks)
}

// affords says whether a value can be checked in so many steps.
func affords(root, value any, most int) bool {
	b := bill{root: root, known: map[[2]uintptr]int{}, most: most}
	return b.count(root, value) <= most && b.steps <= most
}

// bill counts how often schemas are applied to values, each pair of them once.
type bill struct {
	root  any
	known map[[2]uintptr]int
	steps int
	most  int // steps, behind which nothing is counted
}

func (b *bill) count(at, value any) int {
	node, ok := at.(map[string]any)
	b.steps++
	if !ok || b.steps > b.most {
		return 1
	}
	pair := [2]uintptr{identity(node), identity(value)}
	if n, known := b.known[pair]; known {
		return n
	}
	n := 1
	add := func(sub, value any) { n = min(n+b.count(sub, value), b.most+1) }
	for _, sub := range b.applied(node, samePlace) {
		add(sub.schema, value)
	}
	switch value := value.(type) {
	case map[string]any:
		for _, sub := range b.applied(node, property) {
			if sub.keyword == "properties" {
				if v, there := value[sub.name]; there {
					add(sub.schema, v)
				}
				continue
			}
			for _, v := range value {
				add(sub.schema, v)
			}
		}
	case []any:
		for _, sub := range b.applied(node, element) {
			for _, v := range value {
				add(sub.schema, v)
			}
		}
	}
	b.known[pair] = n
	return n
}

// applied is appliedTo, which is work too.
func (b *bill) applied(node map[string]any, at place) []subschema {
	subs := appliedTo(b.root, node, at)
	b.steps += len(subs)
	return subs
}
