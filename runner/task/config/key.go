package config

import (
	"encoding"
	"reflect"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/agent-ci/agent-ci/runner/task/form"
)

// Rule describes a key beyond its Go type.
type Rule struct {
	Path    string // "limits.turns"; "verify[].run" is a key of each element of verify
	About   string // meaning of the key, with its unit
	Initial any    // default; nil for the zero value, an empty list or an empty mapping
	Example string // YAML, for lists and mappings whose form isn't obvious

	Values  []string   // all that may be written; nil for anything of the form
	Form    *form.Form // of the text, of each element of a list, of each value of a mapping
	Names   *form.Form // of the names in a mapping
	Span    *Span      // of a number
	Foreign *Foreign   // of a mapping with foreign keys, or of each element of a list of these

	Required   bool // must be written wherever its group is
	NonEmpty   bool // may not be empty text
	MinEntries int  // entries of a list
	MaxEntries int  // entries of a mapping of mappings, or of a list
	Scalars    bool // numbers and truth values count as text, as they are written

	// Suggest returns the correct key for an unknown name in a group, or in the groups of a mapping.
	// It returns "" if there is none.
	Suggest func(name string) string
}

// Span is the allowed range of a number, including both ends.
type Span struct{ Min, Max int64 }

// Between returns a span.
func Between(least, most int64) *Span { return &Span{least, most} }

// Unlimited is the end of an unlimited span.
const Unlimited = 1_000_000_000_000

// Foreign describes a mapping with foreign keys, passed on unchanged.
type Foreign struct {
	Read   func(value any) (map[string]any, error) // checks the mapping, and fills in defaults
	Schema map[string]any                          // the part of Read expressible in JSON Schema
}

// Custom is a Go type with several notations for its values.
type Custom interface {
	// Words names the ways, for messages.
	Words() string
	// DecodeKey reads node, the value of k at path, and reports whether it fits.
	DecodeKey(d *Decoder, k *Key, path string, node *yaml.Node) bool
	// DescribeKey completes the JSON Schema of k.
	DescribeKey(k *Key, schema map[string]any)
}

// Shape is the notation of a key's value.
type Shape int

// The shapes.
const (
	Group    Shape = iota // a mapping with known keys
	List                  // of text or of groups
	TextMap               // a mapping from any name to text
	OpenMap               // a mapping that this version knows nothing of
	GroupMap              // a mapping from any name to a group
	Text
	Integer
	Decimal
	Boolean
	Duration    // of time
	CustomValue // a Custom
)

var shapes = [...]struct{ words, schema string }{
	Group: {"a mapping", "object"}, List: {"a list", "array"}, TextMap: {"a mapping of text", "object"}, OpenMap: {"a mapping", "object"},
	GroupMap: {"a mapping of mappings", "object"}, Text: {"text", "string"}, Integer: {"a whole number", "integer"},
	Decimal: {"a number", "number"}, Boolean: {"true or false", "boolean"}, Duration: {"a duration", "string"}, CustomValue: {},
}

// Key is a key of a format: its rule, its type and the keys below it.
type Key struct {
	Rule
	Name  string // last part of the path
	Shape Shape
	Keys  []*Key // of a group
	Elem  *Key   // of a list or a mapping
	field int    // of a key in a group: index of the struct's field
	typ   reflect.Type
}

// NewKey describes a Go type by rules. A type at the root has the path "".
func NewKey(rules []Rule, typ reflect.Type) *Key {
	byPath := make(map[string]Rule, len(rules))
	for _, r := range rules {
		byPath[r.Path] = r
	}
	return newKey(byPath, "", typ)
}

func newKey(byPath map[string]Rule, path string, typ reflect.Type) *Key {
	k := &Key{Rule: byPath[path], Name: path[strings.LastIndexByte(path, '.')+1:], Shape: shapeOf(typ), typ: typ}
	k.Path = path
	switch k.Shape {
	case Group:
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			below := newKey(byPath, At(path, name), typ.Field(i).Type)
			below.field = i
			k.Keys = append(k.Keys, below)
		}
	case List:
		k.Elem = newKey(byPath, path+"[]", typ.Elem())
		k.Elem.Form, k.Elem.Values, k.Elem.Foreign, k.Elem.NonEmpty, k.Elem.Example = k.Form, k.Values, k.Foreign, true, strings.Trim(k.Example, "[]")
		if k.Elem.Shape == Text {
			k.Example = "[a, b]"
			if k.Values != nil {
				k.Example = "[" + k.Values[0] + "]"
			}
		}
	case TextMap, GroupMap:
		k.Elem = newKey(byPath, path+".*", typ.Elem())
		k.Elem.Form, k.Elem.Scalars, k.Elem.Suggest = k.Form, k.Shape == TextMap, k.Suggest
	}
	return k
}

func shapeOf(typ reflect.Type) Shape {
	switch {
	case reflect.PointerTo(typ).Implements(reflect.TypeFor[Custom]()):
		return CustomValue
	case typ.Kind() == reflect.Int64 && typ.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return Duration
	case typ == reflect.TypeFor[map[string]string]():
		return TextMap
	case typ.Kind() == reflect.Map && typ.Elem().Kind() == reflect.Struct:
		return GroupMap
	}
	return map[reflect.Kind]Shape{
		reflect.Struct: Group, reflect.Slice: List, reflect.Map: OpenMap, reflect.String: Text,
		reflect.Int: Integer, reflect.Int64: Integer, reflect.Float64: Decimal, reflect.Bool: Boolean,
	}[typ.Kind()]
}

// Words describes the type of the key's value, for messages.
func (k *Key) Words() string {
	if k.Shape == CustomValue {
		return reflect.New(k.typ).Interface().(Custom).Words()
	}
	return shapes[k.Shape].words
}

// At returns the path of a value below another one: At("verify", 0, "name") is verify[0].name.
func At(path string, below ...any) string {
	for _, part := range below {
		switch i, isNumber := part.(int); {
		case isNumber:
			path += "[" + strconv.Itoa(i) + "]"
		case path == "":
			path = part.(string)
		default:
			path += "." + part.(string)
		}
	}
	return path
}

// Key returns the key called name directly below k, or nil.
func (k *Key) Key(name string) *Key {
	for _, below := range k.Keys {
		if below.Name == name {
			return below
		}
	}
	return nil
}

// Settable returns the keys below k that a variable or an assignment can set, in the order of the
// fields. These are all keys except groups and the keys inside lists.
func (k *Key) Settable() []*Key {
	var found []*Key
	for _, below := range k.Keys {
		if below.Shape == Group {
			found = append(found, below.Settable()...)
		} else {
			found = append(found, below)
		}
	}
	return found
}

// At returns the key for a path such as verify[0].name, or nil.
func (k *Key) At(path string) *Key {
	for part := range strings.SplitSeq(path, ".") {
		name, _, listed := strings.Cut(part, "[")
		if k = k.below(name); k != nil && listed {
			k = k.Elem
		}
		if k == nil {
			return nil
		}
	}
	return k
}

// below returns the key called name in a group or in a mapping of any names, or nil.
func (k *Key) below(name string) *Key {
	if k.Shape == TextMap || k.Shape == GroupMap {
		return k.Elem
	}
	return k.Key(name)
}

// Value returns the value of the key at path, which leads through groups, in the value of k. It is the zero
// Value for an unknown key.
func (k *Key) Value(of reflect.Value, path string) reflect.Value {
	for name := range strings.SplitSeq(path, ".") {
		if k = k.Key(name); k == nil {
			return reflect.Value{}
		}
		of = of.Field(k.field)
	}
	return of
}

// HasDefault reports whether k has a value when nothing sets it; a required key, and an element of a list, have none.
func (k *Key) HasDefault() bool {
	return k.About != "" && k.Shape != Group && !k.Required && (k.Shape != CustomValue || k.Initial != nil)
}

// Default returns a new value of k as it is when no layer sets it.
func (k *Key) Default() reflect.Value {
	switch k.Shape {
	case List:
		filled := reflect.MakeSlice(k.typ, 0, 0)
		if k.Initial != nil {
			filled = reflect.AppendSlice(filled, reflect.ValueOf(k.Initial))
		}
		return filled
	case TextMap, OpenMap, GroupMap:
		return reflect.MakeMap(k.typ)
	case Group:
		filled := reflect.New(k.typ).Elem()
		for _, below := range k.Keys {
			filled.Field(below.field).Set(below.Default())
		}
		return filled
	}
	if k.Initial == nil {
		return reflect.Zero(k.typ)
	}
	return reflect.ValueOf(k.Initial).Convert(k.typ)
}
