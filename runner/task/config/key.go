package config

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/agent-ci/agent-ci/runner/task/form"
)

// Span is the allowed range of a number, including both ends.
type Span struct{ Min, Max int64 }

// Unlimited is the end of an unlimited span.
const Unlimited = 1_000_000_000_000

// Foreign describes a mapping with foreign keys, passed on unchanged.
type Foreign struct {
	Read   func(value any) (map[string]any, error) // checks the mapping, and fills in defaults
	Schema map[string]any                          // the part of Read expressible in JSON Schema
}

// MultiNotation is a struct type whose values have several notations. Its field with the tag config:"text" takes
// text, by the rule of the key, and the one with config:"list" takes a list. Fields named in JSON are the keys of a mapping.
type MultiNotation interface {
	// DescribeNotations names the notations for messages.
	DescribeNotations() string
	// CheckValue checks a value that fits its notation.
	CheckValue(d *Decoder, path string, node *yaml.Node)
}

// RawMapping is a mapping that is kept as it is, and checked once the whole file is read.
type RawMapping interface {
	SetNode(file string, node *yaml.Node)
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
	Duration  // of time
	Either    // a MultiNotation
	Undecoded // a RawMapping
)

// shapes has the words for each shape in messages, its type in a schema, and the only kind of node that it is
// written as; 0 for several.
var shapes = [...]struct {
	words, schema string
	kind          yaml.Kind
}{
	Group:     {"a mapping", "object", yaml.MappingNode},
	List:      {"a list", "array", yaml.SequenceNode},
	TextMap:   {"a mapping of text", "object", yaml.MappingNode},
	OpenMap:   {"a mapping", "object", 0},
	GroupMap:  {"a mapping of mappings", "object", yaml.MappingNode},
	Text:      {"text", "string", yaml.ScalarNode},
	Integer:   {"a whole number", "integer", yaml.ScalarNode},
	Decimal:   {"a number", "number", yaml.ScalarNode},
	Boolean:   {"true or false", "boolean", yaml.ScalarNode},
	Duration:  {"a duration", "string", yaml.ScalarNode},
	Either:    {},
	Undecoded: {"a mapping", "object", yaml.MappingNode},
}

// Terms explains the words in the tags of fields: a *form.Form, a list of values, a *Foreign, a
// maximum, a default, or a function from an unknown name to the correct key ("" if there is none).
type Terms map[string]any

// Key is a key of a format: its type, the keys below it, and its rule, which the field's tags hold.
type Key struct {
	Path    string // "limits.turns"; "verify[].run" is a key of each element of verify
	Name    string // last part of the path
	Meaning string // about: meaning of the key, with its unit
	Example string // example: YAML, for lists and mappings whose form isn't obvious

	Constraints

	Shape        Shape
	Keys         []*Key             // of a group
	Elem         *Key               // of a list or a mapping
	notations    map[yaml.Kind]*Key // notations of a MultiNotation
	initialValue reflect.Value      // default:"TEXT" or default:"$term"; the zero Value for the zero value, an empty list or an empty mapping
	fieldIndex   int                // of a key in a group: index of the struct's field
	goType       reflect.Type
}

// Constraints are the rules for a key's value, from its field's tags.
type Constraints struct {
	Values  []string            // values:"a|b" or values:"$term": all that may be written; nil for anything of the form
	Form    *form.Form          // form: of the text, of each element of a list, of each value of a mapping
	Names   *form.Form          // names: of the names in a mapping
	Span    *Span               // span:"1..5" or span:"1.." of a number
	Foreign *Foreign            // foreign: of a mapping with foreign keys, or of each element of a list of these
	Suggest func(string) string // suggest: the correct key for an unknown name in a group, or in the groups of a mapping

	// config lists these as required,alone,nonempty,scalars,blank.
	Required    bool // must be written wherever its group is, unless another key stands alone there
	Alone       bool // takes the place of all other keys of its group
	NonEmpty    bool // may be neither empty text nor an empty list
	Scalars     bool // numbers and truth values count as text, as they are written
	allowsBlank bool // the texts in the list may be empty

	emptyListHint string // instead: what to write in place of an empty list, as a piece of a sentence
	maxEntries    int    // most: entries of a mapping of mappings, or of a list
}

// NewKey describes a Go type by the tags of its fields. It panics for a wrong tag.
func NewKey(typ reflect.Type, terms Terms) *Key { return (&Key{goType: typ}).deriveFromType(terms) }

// deriveFromType completes k from its Go type. The elements of a list inherit the list's rule.
func (k *Key) deriveFromType(terms Terms) *Key {
	k.Name, k.Shape = k.Path[strings.LastIndexByte(k.Path, '.')+1:], shapeOf(k.goType)
	switch k.Shape {
	case Group:
		k.addKeys(terms)
	case Either:
		k.addNotations(terms)
	case List:
		k.Elem = &Key{Path: k.Path + "[]", Constraints: k.Constraints, goType: k.goType.Elem()}
		k.Elem.NonEmpty = !k.allowsBlank
		k.Elem.deriveFromType(terms)
		k.Scalars = false
		if k.Elem.Shape != Either {
			k.Elem.Example = strings.Trim(k.Example, "[]")
		}
		if k.Elem.Shape == Text && k.Example == "" {
			k.Example = "[a, b]"
			if k.Values != nil {
				k.Example = "[" + k.Values[0] + "]"
			}
		}
	case TextMap, GroupMap:
		k.Elem = &Key{Path: k.Path + ".*", Constraints: k.Constraints, goType: k.goType.Elem()}
		k.Elem.Scalars = k.Shape == TextMap
		k.Elem.deriveFromType(terms)
	}
	return k
}

// tagWords returns the words of a struct tag with their texts. It reads the tag once, because StructTag.Get
// would search the whole tag for every word, at each start.
func tagWords(tag reflect.StructTag) map[string]string {
	words := make(map[string]string, 8)
	for rest := string(tag); rest != ""; {
		word, text, _ := strings.Cut(rest, ":")
		quoted, err := strconv.QuotedPrefix(text)
		if err != nil {
			panic("a tag is WORD:\"TEXT\": " + rest)
		}
		rest = strings.TrimLeft(text[len(quoted):], " ")
		words[word], _ = strconv.Unquote(quoted)
	}
	return words
}

// readTag reads the rule of k from the words of its tag, except for its default. It panics for
// an unknown word in the tag's config; text and list are read elsewhere.
func (k *Key) readTag(tag map[string]string, terms Terms) {
	k.Meaning, k.Example, k.emptyListHint = tag["about"], tag["example"], tag["instead"]
	k.Form, k.Names = namedTerm[*form.Form](terms, tag["form"]), namedTerm[*form.Form](terms, tag["names"])
	k.Foreign, k.Suggest = namedTerm[*Foreign](terms, tag["foreign"]), namedTerm[func(string) string](terms, tag["suggest"])
	k.maxEntries = namedTerm[int](terms, tag["most"])
	if word, isTerm := strings.CutPrefix(tag["values"], "$"); isTerm {
		k.Values = namedTerm[[]string](terms, word)
	} else if word != "" {
		k.Values = strings.Split(word, "|")
	}
	if span, has := tag["span"]; has {
		k.Span = &Span{Max: Unlimited}
		if read, _ := fmt.Sscanf(span, "%d..%d", &k.Span.Min, &k.Span.Max); read == 0 {
			panic("a span tag is MIN..MAX or MIN..: " + span)
		}
	}
	flags := map[string]*bool{
		"required": &k.Required, "alone": &k.Alone, "nonempty": &k.NonEmpty, "scalars": &k.Scalars, "blank": &k.allowsBlank,
		"": new(bool), "text": new(bool), "list": new(bool),
	}
	for word := range strings.SplitSeq(tag["config"], ",") {
		*flags[word] = true
	}
}

// namedTerm returns the term with that name; the zero value for the name "". It panics for a missing term.
func namedTerm[T any](terms Terms, name string) (term T) {
	if name != "" {
		term = terms[name].(T)
	}
	return term
}

// setDefault sets the default of k: a scalar, a list of texts [a, b], or a term after $. It does not check the form of
// texts: compiling the patterns of forms would slow down each start.
func (k *Key) setDefault(text string, terms Terms) {
	value := reflect.New(k.goType)
	k.initialValue = value.Elem()
	var err error
	switch word, isTerm := strings.CutPrefix(text, "$"); {
	case isTerm:
		k.initialValue.Set(reflect.ValueOf(terms[word]).Convert(k.goType))
	case k.Shape == List:
		k.initialValue.Set(reflect.ValueOf(strings.Split(strings.Trim(text, "[]"), ", ")))
	case k.Shape == Integer, k.Shape == Decimal, k.Shape == Boolean:
		err = json.Unmarshal([]byte(text), value.Interface())
	default:
		err = json.Unmarshal(strconv.AppendQuote(nil, text), value.Interface())
	}
	if err != nil {
		panic(k.Path + ": wrong default " + text)
	}
}

// fieldKey returns the key or notation of field i of a struct type.
func fieldKey(structType reflect.Type, i int, path string, terms Terms) *Key {
	field := structType.Field(i)
	k := &Key{Path: path, goType: field.Type, fieldIndex: i}
	tag := tagWords(field.Tag)
	k.readTag(tag, terms)
	k.deriveFromType(terms)
	if text, has := tag["default"]; has {
		k.setDefault(text, terms)
	}
	return k
}

// addKeys adds a key for each field of the Go type that has a name in JSON.
func (k *Key) addKeys(terms Terms) {
	for i := range k.goType.NumField() {
		if name, _, _ := strings.Cut(k.goType.Field(i).Tag.Get("json"), ","); name != "" && name != "-" {
			k.Keys = append(k.Keys, fieldKey(k.goType, i, JoinPath(k.Path, name), terms))
		}
	}
}

// addNotations adds a key for each notation of a MultiNotation.
func (k *Key) addNotations(terms Terms) {
	k.notations = make(map[yaml.Kind]*Key)
	mapping := &Key{Constraints: Constraints{Suggest: k.Suggest}, Shape: Group, goType: k.goType}
	mapping.addKeys(terms)
	if len(mapping.Keys) > 0 {
		k.notations[yaml.MappingNode] = mapping
	}
	for i := range k.goType.NumField() {
		switch kind, _, _ := strings.Cut(k.goType.Field(i).Tag.Get("config"), ","); kind {
		case "text":
			k.notations[yaml.ScalarNode] = &Key{Constraints: k.Constraints, Shape: Text, fieldIndex: i}
		case "list":
			k.notations[yaml.SequenceNode] = fieldKey(k.goType, i, "", terms)
		}
	}
}

// shapeOf returns what YAML a Go type is written as.
func shapeOf(typ reflect.Type) Shape {
	switch typ.Kind() {
	case reflect.Slice:
		return List
	case reflect.Map:
		switch {
		case typ == reflect.TypeFor[map[string]string]():
			return TextMap
		case typ.Elem().Kind() == reflect.Struct:
			return GroupMap
		}
		return OpenMap
	case reflect.String:
		return Text
	case reflect.Int, reflect.Int64:
		if typ.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
			return Duration
		}
		return Integer
	case reflect.Float64:
		return Decimal
	case reflect.Bool:
		return Boolean
	}
	switch pointer := reflect.PointerTo(typ); {
	case pointer.Implements(reflect.TypeFor[MultiNotation]()):
		return Either
	case pointer.Implements(reflect.TypeFor[RawMapping]()):
		return Undecoded
	}
	return Group
}

// describeType describes the type of the key's value, for messages.
func (k *Key) describeType() string {
	if k.Shape == Either {
		return reflect.New(k.goType).Interface().(MultiNotation).DescribeNotations()
	}
	return shapes[k.Shape].words
}

// JoinPath returns the path of a value below another one: JoinPath("verify", 0, "name") is verify[0].name.
func JoinPath(path string, below ...any) string {
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

// SettableKeys returns the keys below k that a variable or an assignment can set, in the order of the
// fields. These are all keys except groups and the keys inside lists.
func (k *Key) SettableKeys() (found []*Key) {
	for _, below := range k.Keys {
		if below.Shape == Group {
			found = append(found, below.SettableKeys()...)
		} else {
			found = append(found, below)
		}
	}
	return found
}

// Find returns the key for a path such as verify[0].name, or nil.
func (k *Key) Find(path string) *Key {
	found, names := k.findPath(path)
	if isBelowWholeKey := names == nil; isBelowWholeKey {
		return nil
	}
	return found
}

// findPath returns the key at path, or nil if it is unknown, and the names that path consists of. In a mapping of
// text, the rest of path is a single name, even with dots. If path leads below a key that must be set as a whole,
// findPath returns that key, and nil names.
func (k *Key) findPath(path string) (found *Key, names []string) {
	if k.Shape == TextMap {
		return k.Elem, []string{path}
	}
	part, rest, deeper := strings.Cut(path, ".")
	name, _, listed := strings.Cut(part, "[")
	below := k.Key(name)
	if k.Shape == GroupMap {
		below = k.Elem
	}
	if (listed || deeper) && below.mustBeWhole() {
		return below, nil
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
	if found, names = below.findPath(rest); names == nil {
		return found, nil
	}
	return found, append([]string{part}, names...)
}

// mustBeWhole reports whether no part of the key can be set alone: it has several notations, and an example.
func (k *Key) mustBeWhole() bool { return k != nil && k.Shape == Either && k.Example != "" }

// Value returns the value at path, through groups, in the value of k; zero for an unknown key.
func (k *Key) Value(value reflect.Value, path string) reflect.Value {
	for name := range strings.SplitSeq(path, ".") {
		k = k.Key(name)
		if k == nil {
			return reflect.Value{}
		}
		value = value.Field(k.fieldIndex)
	}
	return value
}

// HasDefault reports whether the documented key k has a value when no layer sets it. Groups, required keys
// and elements of lists have none. A MultiNotation or RawMapping has one only if its tag gives it.
func (k *Key) HasDefault() bool {
	mayLackDefault := k.Shape == Either || k.Shape == Undecoded
	hasValue := k.initialValue.IsValid() || !mayLackDefault
	return k.Meaning != "" && k.Shape != Group && !k.Required && hasValue
}

// Default returns a new, settable value of k as it is when no layer sets it.
func (k *Key) Default() reflect.Value {
	value := reflect.New(k.goType).Elem()
	switch k.Shape {
	case List:
		value.Set(reflect.MakeSlice(k.goType, 0, 0))
		if k.initialValue.IsValid() {
			value.Set(reflect.AppendSlice(value, k.initialValue))
		}
	case TextMap, OpenMap, GroupMap:
		value.Set(reflect.MakeMap(k.goType))
	case Group:
		for _, below := range k.Keys {
			value.Field(below.fieldIndex).Set(below.Default())
		}
	default:
		if k.initialValue.IsValid() {
			value.Set(k.initialValue)
		}
	}
	return value
}
