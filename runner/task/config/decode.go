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
	Misplaced func(kind LayerKind, path string) error
}

// Decoder merges one layer after the other into a value, and collects mistakes.
type Decoder struct {
	format   *Format
	target   reflect.Value
	problems Problems
	places   map[string]Problem // of every value set so far, by path: problems without a message
	// inEarlierLayer holds the paths of groups in named mappings that an earlier layer contains.
	inEarlierLayer map[string]bool

	layers      []Layer // so far, without their data; the last one is being merged
	currentName string  // of that one, or the origin of an assignment

	// Lenient holds the paths of texts that are not final yet. Their form is not checked.
	Lenient map[string]bool
}

// Decoder returns a decoder into a pointer to the format's Go type. It sets the defaults there.
func (f *Format) Decoder(into any) *Decoder {
	d := &Decoder{format: f, target: reflect.ValueOf(into).Elem(), places: make(map[string]Problem), inEarlierLayer: make(map[string]bool)}
	d.target.Set(f.Root.Default())
	return d
}

// layerNumber returns the number of the current layer.
func (d *Decoder) layerNumber() int { return len(d.layers) - 1 }

func (d *Decoder) layerKind() LayerKind { return d.layers[d.layerNumber()].Kind }

// placeOf returns a problem at node, without a message. Layers of assignments have no lines.
func (d *Decoder) placeOf(node *yaml.Node) Problem {
	p := Problem{File: d.currentName, layer: d.layerNumber()}
	if d.layerKind() != ValuesLayer {
		p.Line, p.Column = node.Line, node.Column
	}
	return p
}

// ReportAtNode reports a mistake in the value node at path, and what was likely meant.
func (d *Decoder) ReportAtNode(path string, node *yaml.Node, message string, meant ...string) {
	d.reportAt(d.placeOf(node), path, message, meant...)
}

func (d *Decoder) reportAt(place Problem, path, message string, meant ...string) {
	place.Key, place.Message, place.Suggestion = path, message, strings.Join(meant, "")
	d.add(place)
}

// Report reports a mistake in the value at path after all layers are merged. Its position is that of
// the value, or of the nearest set value above it. Report does nothing if path or a key below it
// already has a mistake.
func (d *Decoder) Report(path, message string) {
	if d.HasProblemBelow(path) {
		return
	}
	place, set := d.places[path]
	for above := path; !set && above != ""; place, set = d.places[above] {
		above = pathAbove(above)
	}
	d.reportAt(place, path, message)
}

// pathAbove removes the last part of a path: a.b[2] becomes a.b, then a, then "".
func pathAbove(path string) string { return path[:max(strings.LastIndexAny(path, ".["), 0)] }

// ReportMissing reports a key missing in all layers, at the start of the last file. Without a file, the mistake
// has no position and comes after those of all layers.
func (d *Decoder) ReportMissing(path, message string) {
	start := Problem{layer: len(d.layers)}
	for i, layer := range d.layers {
		if layer.Kind == FileLayer {
			start = Problem{File: layer.Name, Line: 1, Column: 1, layer: i}
		}
	}
	d.reportAt(start, path, message)
}

// ReportIf calls Report if the condition is true.
func (d *Decoder) ReportIf(condition bool, path, message string) {
	if condition {
		d.Report(path, message)
	}
}

// IsSet reports whether some layer sets a key.
func (d *Decoder) IsSet(path string) bool {
	_, set := d.places[path]
	return set
}

// IsSetByCurrentLayer reports whether the current layer sets a key.
func (d *Decoder) IsSetByCurrentLayer(path string) bool {
	place, set := d.places[path]
	return set && place.layer == d.layerNumber()
}

// SourceKind returns the kind of the layer with the key's value.
func (d *Decoder) SourceKind(path string) LayerKind { return d.layers[d.places[path].layer].Kind }

// HasLayer reports whether a layer of a kind was merged.
func (d *Decoder) HasLayer(kind LayerKind) bool {
	return slices.ContainsFunc(d.layers, func(l Layer) bool { return l.Kind == kind })
}

// mergeValue merges node, the value of k at path, into the Go value into. It reports the mistakes in node.
func (d *Decoder) mergeValue(k *Key, path string, node *yaml.Node, into reflect.Value) {
	if complaint := forbiddenSyntax(node); complaint != "" {
		d.ReportAtNode(path, node, complaint)
		return
	}
	if isNull(node) {
		return
	}
	d.places[path] = d.placeOf(node)
	complaint, meant := "", ""
	if kind := shapes[k.Shape].kind; kind != 0 && node.Kind != kind {
		d.ReportAtNode(path, node, k.wrongType(node))
		return
	}
	switch k.Shape {
	case Group:
		d.mergeGroup(k, path, node, into)
	case List:
		d.replaceList(k, path, node, into)
	case TextMap, GroupMap:
		d.mergeNamed(k, path, node, into)
	case OpenMap:
		d.replaceForeignMap(k, path, node, into)
	case Text:
		complaint, meant = k.readText(node, into, d.Lenient[path])
	case Integer:
		complaint, meant = k.readInteger(node, into)
	case Decimal:
		complaint, meant = k.readDecimal(node, into)
	case Boolean:
		complaint, meant = k.readBoolean(node, into)
	case Duration:
		complaint, meant = k.readDuration(node, into)
	case Either:
		d.replaceMultiNotation(k, path, node, into)
	case Undecoded:
		into.Addr().Interface().(RawMapping).SetNode(d.currentName, node)
	}
	if complaint != "" {
		d.ReportAtNode(path, node, complaint, meant)
	}
}

// replaceMultiNotation decodes node in the notation of its kind. It replaces the value of earlier layers.
func (d *Decoder) replaceMultiNotation(k *Key, path string, node *yaml.Node, into reflect.Value) {
	notation := k.notations[node.Kind]
	if notation == nil {
		d.ReportAtNode(path, node, k.wrongType(node))
		return
	}
	into.SetZero()
	target := into // for a mapping, whose keys are the fields
	if notation.Shape != Group {
		target = into.Field(notation.fieldIndex)
	}
	d.forgetBelow(path)
	problemsBefore := len(d.problems)
	d.mergeValue(notation, path, node, target)
	if len(d.problems) == problemsBefore {
		into.Addr().Interface().(MultiNotation).CheckValue(d, path, node)
	}
}

// forgetBelow removes the positions of values below path, which a later layer replaces.
func (d *Decoder) forgetBelow(path string) {
	maps.DeleteFunc(d.places, func(valuePath string, _ Problem) bool {
		return strings.HasPrefix(valuePath, path+"[") || strings.HasPrefix(valuePath, path+".")
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

// forbiddenName returns a message for a key that is no plain text, or "".
func forbiddenName(name *yaml.Node) string {
	isText := name.Kind == yaml.ScalarNode && !isNull(name)
	switch {
	case isText && name.Tag == mergeTag:
		return "merge keys (<<) are not allowed; write the keys out"
	case !isText && name.Kind != yaml.AliasNode: // forbiddenSyntax reports aliases
		return "a key must be text"
	}
	return forbiddenSyntax(name)
}

// mergeGroup decodes a mapping with fixed keys. It reports missing keys in the first layer of the group.
func (d *Decoder) mergeGroup(k *Key, path string, node *yaml.Node, into reflect.Value) {
	present := make(map[string]bool)
	for name, value := range d.namedValues(path, node) {
		if !isNull(value) {
			present[name.Value] = true
		}
		d.mergeEntry(k, path, name, value, into)
	}
	isAssignment := path == "" && d.layerKind() == ValuesLayer
	if !isAssignment && !d.inEarlierLayer[path] {
		d.reportMissingKeys(k, path, node, present)
	}
}

// reportMissingKeys reports required keys that a group lacks: "is missing; give host, or preset" if preset may
// stand alone. A key that stands alone requires no others, and must have none beside it.
func (d *Decoder) reportMissingKeys(k *Key, path string, node *yaml.Node, present map[string]bool) {
	alternatives := ""
	for _, below := range k.Keys {
		if below.Alone && present[below.Name] {
			d.ReportIf(len(present) > 1, JoinPath(path, below.Name), "must be alone in its entry; leave out the keys beside it")
			return
		}
		if below.Alone {
			alternatives += ", or " + below.Name
		}
	}
	for _, below := range k.Keys {
		missing := JoinPath(path, below.Name)
		isReportedAsMisspelled := slices.ContainsFunc(d.problems, func(p Problem) bool { return p.Suggestion == missing })
		if !below.Required || present[below.Name] || isReportedAsMisspelled {
			continue
		}
		remedy := ""
		if alternatives != "" {
			remedy = "; give " + below.Name + alternatives
		}
		d.ReportAtNode(missing, node, "is missing"+remedy)
	}
}

// mergeEntry merges the entry name: node of a group into the group's Go value. k and path are the group's. If the
// group has no such key, or the key must not be in this layer, mergeEntry reports it.
func (d *Decoder) mergeEntry(k *Key, path string, name, node *yaml.Node, into reflect.Value) {
	below := k.Key(name.Value)
	if below == nil {
		d.ReportAtNode(JoinPath(path, name.Value), name, "unknown key", d.nearestKey(k, path, name.Value))
		return
	}
	inner := JoinPath(path, below.Name)
	if d.format.Misplaced != nil {
		if err := d.format.Misplaced(d.layerKind(), inner); err != nil {
			d.ReportAtNode(inner, name, err.Error())
			return
		}
	}
	valueIsComment := isNull(node) && below.Scalars && strings.HasPrefix(name.LineComment, "#") // name: #12
	if valueIsComment {
		d.ReportAtNode(inner, name, "is followed by a comment, not by a value", fmt.Sprintf("%q", name.LineComment))
		return
	}
	d.mergeValue(below, inner, node, into.Field(below.fieldIndex))
}

// namedValues yields the names of a mapping with their values. It reports invalid and repeated names instead.
func (d *Decoder) namedValues(path string, node *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(name, value *yaml.Node) bool) {
		lines := make(map[string]int)
		for pair := range slices.Chunk(node.Content, 2) {
			name, value := pair[0], pair[1]
			if complaint := forbiddenName(name); complaint != "" {
				d.ReportAtNode(path, name, complaint)
				continue
			}
			if line, twice := lines[name.Value]; twice {
				d.ReportAtNode(JoinPath(path, name.Value), name, fmt.Sprintf("is given twice, the first time in line %d", line))
				continue
			}
			lines[name.Value] = value.Line
			if !yield(name, value) {
				return
			}
		}
	}
}

// replaceList decodes a list in place of that of an earlier layer.
func (d *Decoder) replaceList(k *Key, path string, node *yaml.Node, into reflect.Value) {
	switch {
	case k.maxEntries > 0 && len(node.Content) > k.maxEntries:
		d.ReportAtNode(path, node, fmt.Sprintf("has more than %d", k.maxEntries))
		return
	case k.NonEmpty && len(node.Content) == 0:
		d.ReportAtNode(path, node, "is an empty list; "+cmp.Or(k.emptyListHint, "give at least one"))
		return
	}
	d.forgetBelow(path)
	elements := reflect.MakeSlice(k.goType, 0, len(node.Content))
	for i, item := range node.Content {
		inner := JoinPath(path, i)
		if isNull(item) {
			d.ReportAtNode(inner, item, "is empty")
			continue
		}
		element := k.Elem.Default()
		d.mergeValue(k.Elem, inner, item, element)
		elements = reflect.Append(elements, element)
	}
	into.Set(elements)
}

// mergeNamed merges a mapping with arbitrary names into that of earlier layers. A name in both merges key
// by key if its value is a group, and is replaced otherwise.
func (d *Decoder) mergeNamed(k *Key, path string, node *yaml.Node, into reflect.Value) {
	for name, node := range d.namedValues(path, node) {
		inner, index := JoinPath(path, name.Value), reflect.ValueOf(name.Value)
		if err := k.Names.Check(name.Value); err != nil {
			d.ReportAtNode(inner, name, "this name "+err.Error())
			continue
		}
		if isNull(node) {
			continue
		}
		value := k.Elem.Default()
		if before := into.MapIndex(index); before.IsValid() {
			value.Set(before)
			d.inEarlierLayer[inner] = true // its keys are there, or are missing in the layer before
		}
		d.mergeValue(k.Elem, inner, node, value)
		into.SetMapIndex(index, value)
	}
	if k.maxEntries > 0 && into.Len() > k.maxEntries {
		d.ReportAtNode(path, node, fmt.Sprintf("has more than %d", k.maxEntries))
	}
}

// replaceForeignMap replaces a mapping whose keys this package does not know. k.Foreign checks it.
func (d *Decoder) replaceForeignMap(k *Key, path string, node *yaml.Node, into reflect.Value) {
	problemsBefore := len(d.problems)
	value := d.toJSON(path, node)
	if len(d.problems) > problemsBefore {
		return
	}
	mapping, err := k.Foreign.Read(value)
	into.Set(reflect.ValueOf(mapping))
	if err != nil {
		d.ReportAtNode(path, node, err.Error())
	}
}

// toJSON converts node to types of encoding/json. After a reported mistake the result has no meaning.
func (d *Decoder) toJSON(path string, node *yaml.Node) (value any) {
	complaint := forbiddenSyntax(node)
	switch {
	case complaint != "":
		d.ReportAtNode(path, node, complaint)
	case node.Kind == yaml.SequenceNode:
		list := make([]any, len(node.Content))
		for i, item := range node.Content {
			list[i] = d.toJSON(JoinPath(path, i), item)
		}
		return list
	case node.Kind == yaml.MappingNode:
		mapping := make(map[string]any)
		for name, node := range d.namedValues(path, node) {
			mapping[name.Value] = d.toJSON(JoinPath(path, name.Value), node)
		}
		return mapping
	case node.Tag == intTag || node.Tag == floatTag:
		var number float64
		if node.Decode(&number) != nil || math.IsNaN(number) || math.IsInf(number, 0) {
			d.ReportAtNode(path, node, "must be a finite number")
		}
		return number
	case node.Tag == boolTag || node.Tag == nullTag:
		_ = node.Decode(&value) // the parser chose the tag by the value
		return value
	}
	return node.Value
}
