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

	Required   bool   // must be written wherever its group is, unless another key stands alone there
	Alone      bool   // takes the place of all other keys of its group
	NonEmpty   bool   // may be neither empty text nor an empty list
	Instead    string // what to write in place of an empty list, as a piece of a sentence
	MaxEntries int    // entries of a mapping of mappings, or of a list
	Scalars    bool   // numbers and truth values count as text, as they are written

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

// Several is a struct type whose values have several notations. Its field with the tag config:"text" takes
// text, by the rule of the key, and the one with config:"list" takes a list. Fields named in JSON are the keys of a mapping.
type Several interface {
	// Rules describes the notations: "" all of them with About as their names for messages, "allow" a
	// key of the mapping, "[]" an element of the list.
	Rules() []Rule
	// Fit checks a value that fits its notation.
	Fit(d *Decoder, path string, node *yaml.Node)
}

// Kept is a mapping that is checked once the whole file is read.
type Kept interface {
	Keep(file string, node *yaml.Node)
	Schema() map[string]any
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
	Duration // of time
	Either   // a Several
	Whole    // a Kept
)

var shapes = [...]struct{ words, schema string }{
	Group: {"a mapping", "object"}, List: {"a list", "array"}, TextMap: {"a mapping of text", "object"}, OpenMap: {"a mapping", "object"},
	GroupMap: {"a mapping of mappings", "object"}, Text: {"text", "string"}, Integer: {"a whole number", "integer"},
	Decimal: {"a number", "number"}, Boolean: {"true or false", "boolean"}, Duration: {"a duration", "string"}, Either: {}, Whole: {"a mapping", "object"},
}

// Key is a key of a format: its rule, its type and the keys below it.
type Key struct {
	Rule
	Name  string // last part of the path
	Shape Shape
	Keys  []*Key             // of a group
	Elem  *Key               // of a list or a mapping
	ways  map[yaml.Kind]*Key // notations of a Several
	words string             // names of these notations
	field int                // of a key in a group: index of the struct's field
	typ   reflect.Type
}

// NewKey describes a Go type by rules. A type at the root has the path "".
func NewKey(rules []Rule, typ reflect.Type) *Key {
	return newKey(rulesByPath(rules), "", typ)
}

func rulesByPath(rules []Rule) map[string]Rule {
	byPath := make(map[string]Rule, len(rules))
	for _, r := range rules {
		byPath[r.Path] = r
	}
	return byPath
}

// newKey builds the key at path for a Go type, with all keys below it. An entry of a list has the rule of its list, if it
// has none of its own.
func newKey(byPath map[string]Rule, path string, typ reflect.Type) *Key {
	k := &Key{Rule: byPath[path], Name: path[strings.LastIndexByte(path, '.')+1:], Shape: shapeOf(typ), typ: typ}
	k.Path = path
	switch k.Shape {
	case Group:
		k.addKeys(byPath)
	case Either:
		k.addWays()
	case List:
		k.Elem = newKey(byPath, path+"[]", typ.Elem())
		if _, ruled := byPath[path+"[]"]; !ruled {
			k.Elem.Form, k.Elem.Values, k.Elem.Foreign, k.Elem.NonEmpty, k.Elem.Example = k.Form, k.Values, k.Foreign, true, strings.Trim(k.Example, "[]")
		}
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

func (k *Key) addKeys(byPath map[string]Rule) {
	for i := range k.typ.NumField() {
		if name, _, _ := strings.Cut(k.typ.Field(i).Tag.Get("json"), ","); name != "" && name != "-" {
			below := newKey(byPath, At(k.Path, name), k.typ.Field(i).Type)
			below.field = i
			k.Keys = append(k.Keys, below)
		}
	}
}

// addWays adds a key for each notation of a Several.
func (k *Key) addWays() {
	rules := rulesByPath(reflect.New(k.typ).Interface().(Several).Rules())
	k.ways, k.words = make(map[yaml.Kind]*Key), rules[""].About
	mapping := &Key{Rule: rules[""], Shape: Group, typ: k.typ}
	mapping.About = ""
	if mapping.addKeys(rules); len(mapping.Keys) > 0 {
		k.ways[yaml.MappingNode] = mapping
	}
	for i := range k.typ.NumField() {
		field := k.typ.Field(i)
		switch field.Tag.Get("config") {
		case "text":
			k.ways[yaml.ScalarNode] = &Key{Rule: k.Rule, Shape: Text, field: i}
			k.ways[yaml.ScalarNode].About = ""
		case "list":
			k.ways[yaml.SequenceNode] = newKey(rules, "", field.Type)
			k.ways[yaml.SequenceNode].field, k.ways[yaml.SequenceNode].About = i, ""
		}
	}
}

// shapeOf returns what YAML a Go type is written as. The first case that fits counts.
func shapeOf(typ reflect.Type) Shape {
	switch {
	case reflect.PointerTo(typ).Implements(reflect.TypeFor[Several]()):
		return Either
	case reflect.PointerTo(typ).Implements(reflect.TypeFor[Kept]()):
		return Whole
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
	if k.Shape == Either {
		return k.words
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
	found, _ := k.find(path)
	return found
}

// find returns the key at path, or nil, and the names in path. In a mapping of text, the rest of path is a
// single name.
func (k *Key) find(path string) (*Key, []string) {
	if k.Shape == TextMap {
		return k.Elem, []string{path}
	}
	part, rest, deeper := strings.Cut(path, ".")
	name, _, listed := strings.Cut(part, "[")
	below := k.Key(name)
	if k.Shape == GroupMap {
		below = k.Elem
	}
	if below != nil && listed {
		below = below.Elem
	}
	if below == nil {
		return nil, strings.Split(path, ".")
	}
	if !deeper {
		return below, []string{part}
	}
	found, names := below.find(rest)
	return found, append([]string{part}, names...)
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
	return k.About != "" && k.Shape != Group && !k.Required && (k.Shape != Either && k.Shape != Whole || k.Initial != nil)
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
