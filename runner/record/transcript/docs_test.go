package transcript

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/golden"
	"github.com/agent-ci/agent-ci/runner/record/price"
	"github.com/agent-ci/agent-ci/runner/record/transcript/eventlog"
)

const eventsPage = "../../../docs/reference/events.md"

// row is a row of a table: the field and its meaning, which is the only part that is written by hand.
var row = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|[^|]*\\| (.+) \\|\n")

// TestEventsAreDocumented holds the tables of the page to the types of the events: their fields, in order,
// with the types. With -update it rewrites them and keeps what the page says of a field.
func TestEventsAreDocumented(t *testing.T) {
	raw := must.Get(os.ReadFile(eventsPage))(t)
	page := string(raw)
	head, rest, _ := strings.Cut(page, "\n### ")
	events, tail, found := strings.Cut(rest, "\n## ")
	if !found {
		t.Fatalf("%s has no section behind the events", eventsPage)
	}
	var want strings.Builder
	want.WriteString(head)
	named := map[Type]bool{}
	for section := range strings.SplitSeq(events, "\n### ") {
		name, text, _ := strings.Cut(section, "\n")
		data := Decode(eventlog.Event{Type: Type(name), Data: []byte("{}")}).Content
		if data == nil || named[Type(name)] {
			t.Errorf("%s: there is no event %s, or there are two sections", eventsPage, name)
		}
		named[Type(name)] = true
		meanings := map[string]string{}
		for _, found := range row.FindAllStringSubmatch(text, -1) {
			meanings[found[1]] = found[2]
		}
		about, _, _ := strings.Cut(text, "| field |")
		fmt.Fprintf(&want, "\n### %s\n%s| field | type | meaning |\n|---|---|---|\n", name, about)
		for _, f := range fields(reflect.TypeOf(data), "") {
			if meanings[f.name] == "" {
				t.Errorf("%s: %s does not explain %s", eventsPage, name, f.name)
			}
			fmt.Fprintf(&want, "| `%s` | %s | %s |\n", f.name, f.kind, meanings[f.name])
		}
	}
	want.WriteString("\n## " + tail)
	for kind := range contents {
		if !named[kind] {
			t.Errorf("%s has no section %s", eventsPage, kind)
		}
	}
	golden.Compare(t, eventsPage, want.String())
}

type field struct{ name, kind string }

// fields returns the fields of a type in JSON, and those of the objects in it below a prefix.
func fields(of reflect.Type, prefix string) (all []field) {
	for f := range of.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if f.Anonymous {
			all = append(all, fields(f.Type, prefix)...)
			continue
		}
		kind, inner, below := describe(f.Type)
		if strings.Contains(options, "omitempty") {
			kind += ", optional"
		}
		all = append(all, field{prefix + name, kind})
		if inner != nil {
			all = append(all, fields(inner, prefix+name+below)...)
		}
	}
	return all
}

// describe returns what a type is in JSON, and the type of the objects in it with what goes before
// the names of their fields.
func describe(of reflect.Type) (kind string, inner reflect.Type, below string) {
	switch of {
	case reflect.TypeFor[json.RawMessage]():
		return "JSON", nil, ""
	case reflect.TypeFor[price.Usage]():
		return "[usage](#usage)", nil, ""
	case reflect.TypeFor[price.List]():
		return "[price](#price)", nil, ""
	}
	switch of.Kind() {
	case reflect.Pointer:
		return describe(of.Elem())
	case reflect.Slice:
		element, inner, _ := describe(of.Elem())
		if inner != nil {
			return "list of objects", inner, "[]."
		}
		return "list of " + element, nil, ""
	case reflect.Struct:
		return "object", of, "."
	case reflect.Bool:
		return "true or false", nil, ""
	case reflect.String:
		return "text", nil, ""
	case reflect.Map:
		return "object", nil, ""
	case reflect.Interface:
		return "JSON", nil, ""
	}
	if slices.Contains([]reflect.Kind{reflect.Int, reflect.Int64, reflect.Float64}, of.Kind()) {
		return "number", nil, ""
	}
	return of.String(), nil, ""
}
