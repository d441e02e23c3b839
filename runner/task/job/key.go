package job

import (
	"reflect"
	"strings"
	"sync"
)

// kind is the type of a key's value.
type kind int

const (
	group    kind = iota // a mapping with known keys
	list                 // of text or of groups
	textMap              // a mapping from any name to text
	openMap              // a mapping that this version knows nothing of
	groupMap             // a mapping from any name to a group
	text
	integer
	decimal
	truth
	length   // of time
	network  // a word or hosts
	allowed  // a host, or a mapping
	command  // a script, or argv
	template // a job with values of a target
)

// describe is how the kinds are called in messages and documentation.
func (k kind) describe() string { return kindNames[k].words }

var kindNames = [...]struct{ words, schema string }{
	group:    {"a mapping", "object"},
	list:     {"a list", "array"},
	textMap:  {"a mapping of text", "object"},
	openMap:  {"a mapping", "object"},
	groupMap: {"a mapping of mappings", "object"},
	text:     {"text", "string"},
	integer:  {"a whole number", "integer"},
	decimal:  {"a number", "number"},
	truth:    {"true or false", "boolean"},
	length:   {"a duration", "string"},
	network:  {"one of its words, or {allow: [hosts]}", ""},
	allowed:  {"a host, or a mapping such as {host: db.example.org, private: true} or {preset: npm}", ""},
	command:  {"a script as text, or a program with its arguments as a list", ""},
	template: {"a mapping", "object"},
}

// key is a key of the job file: its rule, its type and the keys below it.
type key struct {
	rule
	name  string // last part of the path
	kind  kind
	field int          // of a key in a group: index of the struct's field
	typ   reflect.Type // of the Go value
	keys  []*key       // of a group
	elem  *key         // of a list or text map
}

// root is the job itself, as a group of the top-level keys.
var root = sync.OnceValue(func() *key { return newRoot(rules, reflect.TypeFor[Job]()) })

func newRoot(rules []rule, typ reflect.Type) *key {
	byPath := make(map[string]rule, len(rules))
	for _, r := range rules {
		byPath[r.path] = r
	}
	return newKey(byPath, "", typ)
}

func newKey(byPath map[string]rule, path string, typ reflect.Type) *key {
	k := &key{rule: byPath[path], name: path[strings.LastIndexByte(path, '.')+1:], kind: kindOf(typ), typ: typ}
	k.path = path
	switch k.kind {
	case group, allowed:
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			below := newKey(byPath, join(path, name), typ.Field(i).Type)
			below.field = i
			k.keys = append(k.keys, below)
		}
	case list:
		k.elem = newKey(byPath, path+"[]", typ.Elem())
		k.elem.form, k.elem.values, k.elem.foreign, k.elem.filled, k.elem.example = k.form, k.values, k.foreign, true, strings.Trim(k.example, "[]")
		if k.elem.kind == text {
			k.example = "[a, b]"
		}
	case textMap:
		k.elem = newKey(byPath, path+".*", typ.Elem())
		k.elem.form, k.elem.scalars = k.form, true
	case groupMap:
		k.elem = newKey(byPath, path+".*", typ.Elem())
	}
	return k
}

func kindOf(typ reflect.Type) kind {
	switch typ {
	case reflect.TypeFor[Duration]():
		return length
	case reflect.TypeFor[Network]():
		return network
	case reflect.TypeFor[Allowed]():
		return allowed
	case reflect.TypeFor[Command]():
		return command
	case reflect.TypeFor[Template]():
		return template
	case reflect.TypeFor[map[string]string]():
		return textMap
	}
	if typ.Kind() == reflect.Map && typ.Elem().Kind() == reflect.Struct {
		return groupMap
	}
	return map[reflect.Kind]kind{
		reflect.Struct: group, reflect.Slice: list, reflect.Map: openMap, reflect.String: text,
		reflect.Int: integer, reflect.Int64: integer, reflect.Float64: decimal, reflect.Bool: truth,
	}[typ.Kind()]
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// key is the key of that name below k, or nil.
func (k *key) key(name string) *key {
	for _, below := range k.keys {
		if below.name == name {
			return below
		}
	}
	return nil
}

// settable are the keys below k that one variable or assignment sets whole, in
// the order of the fields: all but groups and what is inside of lists.
func (k *key) settable() []*key {
	var found []*key
	for _, below := range k.keys {
		if below.kind == group {
			found = append(found, below.settable()...)
		} else {
			found = append(found, below)
		}
	}
	return found
}

// defaultValue is a new value of k as it is when no layer sets it.
func (k *key) defaultValue() reflect.Value {
	switch k.kind {
	case list:
		filled := reflect.MakeSlice(k.typ, 0, 0)
		if k.initial != nil {
			filled = reflect.AppendSlice(filled, reflect.ValueOf(k.initial))
		}
		return filled
	case textMap, openMap, groupMap:
		return reflect.MakeMap(k.typ)
	case group:
		filled := reflect.New(k.typ).Elem()
		for _, below := range k.keys {
			filled.Field(below.field).Set(below.defaultValue())
		}
		return filled
	}
	if k.initial == nil {
		return reflect.Zero(k.typ)
	}
	return reflect.ValueOf(k.initial).Convert(k.typ)
}
