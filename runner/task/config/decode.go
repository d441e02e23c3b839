package config

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Format is a kind of file.
type Format struct {
	Root *Key
	Name string // "job", "campaign"
	// Misplaced returns an error for a key that does not belong in a layer of that kind. The field
	// is nil if all keys belong in all layers.
	Misplaced func(kind Kind, path string) error
}

// place is the position of a value in its layer.
type place struct {
	layer        int
	name         string
	line, column int
}

// Decoder merges one layer after the other into a value, and collects mistakes.
type Decoder struct {
	format *Format
	into   reflect.Value
	found  Problems
	places map[string]place // of every value set so far, by path
	// inEarlierLayer holds the paths of groups in named mappings that an earlier layer contains.
	inEarlierLayer map[string]bool

	layers []Layer // so far, without their data; the last one is being merged
	name   string  // of that one, or the origin of an assignment

	// Lenient holds the paths of texts that are not final yet. Their form is not checked.
	Lenient map[string]bool
}

// Decoder returns a decoder into a pointer to the format's Go type. It sets the defaults there.
func (f *Format) Decoder(into any) *Decoder {
	d := &Decoder{format: f, into: reflect.ValueOf(into).Elem(), places: make(map[string]place), inEarlierLayer: make(map[string]bool)}
	d.into.Set(f.Root.Default())
	return d
}

// layer returns the number of the current layer.
func (d *Decoder) layer() int { return len(d.layers) - 1 }

func (d *Decoder) kind() Kind { return d.layers[d.layer()].Kind }

// place returns the position of node. Layers of assignments have no lines.
func (d *Decoder) place(node *yaml.Node) place {
	if d.kind() == Values {
		return place{layer: d.layer(), name: d.name}
	}
	return place{d.layer(), d.name, node.Line, node.Column}
}

// Complain reports a mistake in the value node at path, and what was likely meant. It returns false, to be
// returned by checks of the value.
func (d *Decoder) Complain(path string, node *yaml.Node, message string, meant ...string) bool {
	d.complainAt(d.place(node), path, message, meant...)
	return false
}

func (d *Decoder) complainAt(at place, path, message string, meant ...string) {
	d.add(at.layer, Problem{File: at.name, Line: at.line, Column: at.column, Key: path, Message: message, Suggestion: strings.Join(meant, "")})
}

// Wrong reports a mistake in the value at path after all layers are merged. Its position is that of
// the value, or of the nearest set value above it. Wrong does nothing if path or a key below it
// already has a mistake.
func (d *Decoder) Wrong(path, message string) {
	if d.HasProblem(path) {
		return
	}
	at, set := d.places[path]
	for above := path; !set && above != ""; at, set = d.places[above] {
		above = above[:max(strings.LastIndexAny(above, ".["), 0)]
	}
	d.complainAt(at, path, message)
}

// Missing reports a key missing in all layers, at the start of the topmost file.
func (d *Decoder) Missing(path, message string) {
	at := place{layer: len(d.layers)}
	for i, layer := range d.layers {
		if layer.Kind == File {
			at = place{i, layer.Name, 1, 1}
		}
	}
	d.complainAt(at, path, message)
}

// WrongIf calls Wrong if the condition is true.
func (d *Decoder) WrongIf(is bool, path, message string) {
	if is {
		d.Wrong(path, message)
	}
}

// IsSet reports whether some layer sets a key.
func (d *Decoder) IsSet(path string) bool {
	_, set := d.places[path]
	return set
}

// IsSetByCurrentLayer reports whether the current layer sets a key.
func (d *Decoder) IsSetByCurrentLayer(path string) bool {
	at, set := d.places[path]
	return set && at.layer == d.layer()
}

// KindOf returns the kind of the layer with the key's value.
func (d *Decoder) KindOf(path string) Kind { return d.layers[d.places[path].layer].Kind }

// Has reports whether a layer of a kind was merged.
func (d *Decoder) Has(kind Kind) bool {
	return slices.ContainsFunc(d.layers, func(l Layer) bool { return l.Kind == kind })
}

// value merges node, the value of k at path, into the Go value into. It reports whether node fits
// k, and has reported the mistake otherwise.
func (d *Decoder) value(k *Key, path string, node *yaml.Node, into reflect.Value) bool {
	if complaint := forbiddenSyntax(node); complaint != "" {
		return d.Complain(path, node, complaint)
	}
	if isNull(node) {
		return true
	}
	d.places[path] = d.place(node)
	return [...]func(*Key, string, *yaml.Node, reflect.Value) bool{
		Group: d.group, List: d.list, TextMap: d.named, OpenMap: d.openMap, GroupMap: d.named, Text: d.text,
		Integer: d.integer, Decimal: d.decimal, Boolean: d.boolean, Duration: d.duration,
		Either: d.either, Undecoded: d.undecoded,
	}[k.Shape](k, path, node, into)
}

// either replaces a Several by node, in the notation that the kind of node has.
func (d *Decoder) either(k *Key, path string, node *yaml.Node, into reflect.Value) bool {
	way := k.ways[node.Kind]
	if way == nil {
		return d.wrongType(k, path, node)
	}
	into.SetZero()
	field, before := into, len(d.found)
	if way.Shape != Group {
		field = into.Field(way.field)
	}
	d.forgetBelow(path)
	if d.value(way, path, node, field); len(d.found) == before {
		into.Addr().Interface().(Several).Fit(d, path, node)
	}
	return len(d.found) == before
}

func (d *Decoder) undecoded(k *Key, path string, node *yaml.Node, into reflect.Value) bool {
	if node.Kind != yaml.MappingNode {
		return d.wrongType(k, path, node)
	}
	into.Addr().Interface().(Raw).SetNode(d.name, node)
	return true
}

// forgetBelow removes the positions of values below path, which a later layer replaces.
func (d *Decoder) forgetBelow(path string) {
	maps.DeleteFunc(d.places, func(at string, _ place) bool {
		return strings.HasPrefix(at, path+"[") || strings.HasPrefix(at, path+".")
	})
}

// forbiddenSyntax returns a message for YAML features forbidden in these files, or "".
func forbiddenSyntax(node *yaml.Node) string {
	switch {
	case node.Kind == yaml.AliasNode || node.Anchor != "":
		return "anchors and aliases are not allowed; write the value out"
	case node.Style&yaml.TaggedStyle != 0:
		return "tags are not allowed; quote what is to be text"
	}
	return ""
}

func forbiddenName(name *yaml.Node) string {
	switch {
	case name.Kind == yaml.ScalarNode && name.Tag == mergeTag:
		return "merge keys (<<) are not allowed; write the keys out"
	case name.Kind != yaml.AliasNode && (name.Kind != yaml.ScalarNode || isNull(name)):
		return "a key must be text"
	}
	return forbiddenSyntax(name)
}

// group decodes a mapping with fixed keys. It reports false only for a value that is no mapping. Missing keys are
// reported where a layer first gives the group.
func (d *Decoder) group(k *Key, path string, node *yaml.Node, into reflect.Value) bool {
	if node.Kind != yaml.MappingNode {
		return d.wrongType(k, path, node)
	}
	given := make(map[string]bool)
	for name, value := range d.pairs(path, node) {
		if !isNull(value) {
			given[name.Value] = true
		}
		d.entry(k, path, name, value, into)
	}
	if path == "" && d.kind() == Values || path != "" && d.inEarlierLayer[path] {
		return true
	}
	d.complete(k, path, node, given)
	return true
}

// complete reports keys that are missing in a group, and those beside a key that stands alone.
func (d *Decoder) complete(k *Key, path string, node *yaml.Node, given map[string]bool) {
	instead := ""
	for _, below := range k.Keys {
		if below.Alone && given[below.Name] {
			d.WrongIf(len(given) > 1, At(path, below.Name), "must be alone in its entry; leave out the keys beside it")
			return
		}
		if below.Alone {
			instead += ", or " + below.Name
		}
	}
	for _, below := range k.Keys {
		missing := At(path, below.Name)
		isMisspelled := slices.ContainsFunc(d.found, func(p Problem) bool { return p.Suggestion == missing })
		if !below.Required || given[below.Name] || isMisspelled {
			continue
		}
		if instead != "" {
			instead = "; give " + below.Name + instead
		}
		d.Complain(missing, node, "is missing"+instead)
	}
}

// entry decodes a key of a group, or reports why there is no such key here.
func (d *Decoder) entry(k *Key, path string, name, node *yaml.Node, into reflect.Value) {
	below := k.Key(name.Value)
	if below == nil {
		d.Complain(At(path, name.Value), name, "unknown key", d.nearestKey(k, path, name.Value))
		return
	}
	inner := At(path, below.Name)
	if d.format.Misplaced != nil {
		if err := d.format.Misplaced(d.kind(), inner); err != nil {
			d.Complain(inner, name, err.Error())
			return
		}
	}
	if isNull(node) && below.Scalars && strings.HasPrefix(name.LineComment, "#") {
		d.Complain(inner, name, "is followed by a comment, not by a value", fmt.Sprintf("%q", name.LineComment))
		return
	}
	d.value(below, inner, node, into.Field(below.field))
}

// pairs yields the names of a mapping with their values. It reports names that are invalid or repeated.
func (d *Decoder) pairs(path string, node *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(name, value *yaml.Node) bool) {
		lines := make(map[string]int)
		for pair := range slices.Chunk(node.Content, 2) {
			name := pair[0]
			if complaint := forbiddenName(name); complaint != "" {
				d.Complain(path, name, complaint)
			} else if line, twice := lines[name.Value]; twice {
				d.Complain(At(path, name.Value), name, fmt.Sprintf("is given twice, the first time in line %d", line))
			} else if lines[name.Value] = pair[1].Line; !yield(name, pair[1]) {
				return
			}
		}
	}
}

// list decodes a list in place of that of an earlier layer. It returns false if it reported a problem.
func (d *Decoder) list(k *Key, path string, node *yaml.Node, into reflect.Value) bool {
	switch {
	case node.Kind != yaml.SequenceNode:
		return d.wrongType(k, path, node)
	case k.maxEntries > 0 && len(node.Content) > k.maxEntries:
		return d.Complain(path, node, fmt.Sprintf("has more than %d", k.maxEntries))
	case k.NonEmpty && len(node.Content) == 0:
		return d.Complain(path, node, "is an empty list; "+cmp.Or(k.instead, "give at least one"))
	}
	d.forgetBelow(path)
	elements, fits := reflect.MakeSlice(k.typ, 0, len(node.Content)), true
	for i, item := range node.Content {
		inner := At(path, i)
		if isNull(item) {
			fits = d.Complain(inner, item, "is empty")
			continue
		}
		slot := reflect.New(k.Elem.typ).Elem()
		slot.Set(k.Elem.Default())
		fits = d.value(k.Elem, inner, item, slot) && fits
		elements = reflect.Append(elements, slot)
	}
	into.Set(elements)
	return fits
}

// named merges a mapping from any names to values, name by name, and in groups key by key.
func (d *Decoder) named(k *Key, path string, node *yaml.Node, into reflect.Value) bool {
	if node.Kind != yaml.MappingNode {
		return d.wrongType(k, path, node)
	}
	for name, node := range d.pairs(path, node) {
		inner := At(path, name.Value)
		if err := k.Names.Check(name.Value); err != nil {
			d.Complain(inner, name, "this name "+err.Error())
			continue
		}
		if isNull(node) {
			continue
		}
		value := reflect.New(k.Elem.typ).Elem()
		value.Set(k.Elem.Default())
		if before := into.MapIndex(reflect.ValueOf(name.Value)); before.IsValid() {
			value.Set(before)
			d.inEarlierLayer[inner] = true // its keys are there, or are missing in the layer before
		}
		d.value(k.Elem, inner, node, value)
		into.SetMapIndex(reflect.ValueOf(name.Value), value)
	}
	return k.maxEntries == 0 || into.Len() <= k.maxEntries || d.Complain(path, node, fmt.Sprintf("has more than %d", k.maxEntries))
}

// openMap merges a mapping with foreign keys.
func (d *Decoder) openMap(k *Key, path string, node *yaml.Node, into reflect.Value) bool {
	before := len(d.found)
	value := d.asJSON(path, node)
	if len(d.found) > before {
		return false
	}
	known, err := k.Foreign.Read(value)
	into.Set(reflect.ValueOf(known))
	return err == nil || d.Complain(path, node, err.Error())
}

// asJSON returns node as JSON has it. It reports what JSON does not have.
func (d *Decoder) asJSON(path string, node *yaml.Node) (value any) {
	complaint := forbiddenSyntax(node)
	switch {
	case complaint != "":
		d.Complain(path, node, complaint)
	case node.Kind == yaml.SequenceNode:
		list := make([]any, len(node.Content))
		for i, item := range node.Content {
			list[i] = d.asJSON(At(path, i), item)
		}
		return list
	case node.Kind == yaml.MappingNode:
		mapping := make(map[string]any)
		for name, node := range d.pairs(path, node) {
			mapping[name.Value] = d.asJSON(At(path, name.Value), node)
		}
		return mapping
	case node.Tag == intTag || node.Tag == floatTag:
		var number float64
		if node.Decode(&number) != nil || math.IsNaN(number) || math.IsInf(number, 0) {
			d.Complain(path, node, "must be a finite number")
		}
		return number
	case node.Tag == boolTag || node.Tag == nullTag:
		_ = node.Decode(&value) // the parser chose the tag by the value
		return value
	}
	return node.Value
}
