package rules

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// Value is what an attribute is set to for a path: the zero Value when nothing
// says anything, or a line says so with "!name".
type Value struct {
	state state
	text  string
}

type state uint8

const (
	unspecified state = iota
	set
	unset
	text
)

// IsSet says that the attribute stands there without a value ("name").
func (v Value) IsSet() bool { return v.state == set }

// IsUnset says that it is switched off ("-name").
func (v Value) IsUnset() bool { return v.state == unset }

// Text returns the value of "name=value", else "".
func (v Value) Text() string { return v.text }

type Attributes []attributeLine

type attributeLine struct {
	pattern pattern
	macro   string // name of the macro that the line defines instead of matching a pattern
	assigns []assignment
}

type assignment struct {
	name  string
	value Value
}

const longestLine = 2048 // bytes; git ignores longer ones

// ParseAttributes reads an attributes file that stands in the folder base (""
// for the root and for files outside of the checkout, else ending with a
// slash). Macros may be defined only where base is "".
func ParseAttributes(data []byte, base string) Attributes {
	var list Attributes
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	for line := range strings.SplitSeq(string(data), "\n") {
		if len(line) >= longestLine {
			continue
		}
		if parsed, ok := parseAttributeLine(line, base); ok {
			list = append(list, parsed)
		}
	}
	return list
}

func parseAttributeLine(line, base string) (attributeLine, bool) {
	const blank = " \t\r\n"
	line = strings.TrimLeft(line, blank)
	if line == "" || line[0] == '#' {
		return attributeLine{}, false
	}
	name, rest := cutName(line, blank)
	parsed := attributeLine{}
	if macro, ok := strings.CutPrefix(name, "[attr]"); ok {
		if macro == "" {
			rest = strings.TrimLeft(rest, blank)
			macro, rest = cutName(rest, blank)
		}
		if base != "" || !validName(macro) {
			return attributeLine{}, false
		}
		parsed.macro = macro
	} else if parsed.pattern = parsePattern(name, base); parsed.pattern.negated {
		return attributeLine{}, false
	}
	for _, word := range strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune(blank, r) }) {
		if a, ok := parseAssignment(word); ok {
			parsed.assigns = append(parsed.assigns, a)
		}
	}
	return parsed, true
}

// cutName takes the pattern from the start of a line; it may be quoted as in C.
func cutName(line, blank string) (name, rest string) {
	if strings.HasPrefix(line, `"`) {
		if name, rest, ok := unquote(line); ok {
			return name, rest
		}
	}
	if at := strings.IndexAny(line, blank); at >= 0 {
		return line[:at], line[at:]
	}
	return line, ""
}

func unquote(line string) (name, rest string, ok bool) {
	var b strings.Builder
	for i := 1; i < len(line); i++ {
		switch c := line[i]; c {
		case '"':
			return b.String(), line[i+1:], true
		case '\\':
			decoded, n := unescape(line[i+1:])
			if n == 0 {
				return "", "", false
			}
			b.WriteByte(decoded)
			i += n
		default:
			b.WriteByte(c)
		}
	}
	return "", "", false
}

func unescape(s string) (c byte, n int) {
	if s == "" {
		return 0, 0
	}
	if at := strings.IndexByte(`abfnrtv\"`, s[0]); at >= 0 {
		return "\a\b\f\n\r\t\v\\\""[at], 1
	}
	if len(s) < 3 {
		return 0, 0
	}
	value, err := strconv.ParseUint(s[:3], 8, 8)
	if err != nil {
		return 0, 0
	}
	return byte(value), 3
}

func parseAssignment(word string) (assignment, bool) {
	a := assignment{value: Value{state: set}}
	switch word[0] {
	case '-':
		a.name, a.value.state = word[1:], unset
	case '!':
		a.name, a.value.state = word[1:], unspecified
	default:
		name, value, valued := strings.Cut(word, "=")
		a.name = name
		if valued {
			a.value = Value{state: text, text: value}
		}
	}
	return a, validName(a.name)
}

func validName(name string) bool {
	if name == "" || name[0] == '-' {
		return false
	}
	return strings.IndexFunc(name, func(r rune) bool {
		return !strings.ContainsRune("-._", r) &&
			(r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0
}

// Names lists the attributes that any line of the file assigns.
func (l Attributes) Names(yield func(name string, v Value) bool) {
	for _, line := range l {
		for _, a := range line.assigns {
			if !yield(a.name, a.value) {
				return
			}
		}
	}
}

// Resolved is the attributes of one path by name.
type Resolved map[string]Value

// builtin is the one macro that git knows by itself.
var builtin = Attributes{{
	macro: "binary",
	assigns: []assignment{
		{"diff", Value{state: unset}}, {"merge", Value{state: unset}}, {"text", Value{state: unset}},
	},
}}

// Resolve returns the attributes of a file by lists, the weakest first: what
// git reads from the system's and the user's file, .gitattributes from the
// root down to the file's folder, then info/attributes.
func Resolve(path string, fold bool, lists ...Attributes) Resolved {
	r := resolver{values: Resolved{}, lists: append([]Attributes{builtin}, lists...)}
	for _, list := range slices.Backward(lists) {
		for _, line := range slices.Backward(list) {
			if line.macro == "" && line.pattern.matches(path, false, fold) {
				r.assign(line.assigns)
			}
		}
	}
	return r.values
}

type resolver struct {
	values Resolved
	lists  []Attributes
}

// assign takes the assignments of one line, the last first; what is there
// already came from a stronger line and stays.
func (r *resolver) assign(assigns []assignment) {
	for _, a := range slices.Backward(assigns) {
		if _, known := r.values[a.name]; known {
			continue
		}
		r.values[a.name] = a.value
		if a.value.state == set {
			r.assign(r.macro(a.name))
		}
	}
}

func (r *resolver) macro(name string) []assignment {
	for _, list := range slices.Backward(r.lists) {
		for _, line := range slices.Backward(list) {
			if line.macro == name {
				return line.assigns
			}
		}
	}
	return nil
}
