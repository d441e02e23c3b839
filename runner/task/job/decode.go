package job

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// place is where a value was set.
type place struct {
	layer        int
	name         string
	line, column int
}

// decoder merges one layer after the other into a job, or reads another file that is written as one.
type decoder struct {
	root    *key          // of what is read
	into    reflect.Value // of root
	job     *Job          // into, where that is a job
	report  report
	places  map[string]place // of every value set so far, by path
	earlier map[string]bool  // groups of mappings by names, by path, that an earlier layer has
	jobFile *place           // where the topmost job file begins; nil without one

	kinds []Kind // of the layers so far
	layer int    // that is being merged
	kind  Kind   // of that layer
	name  string // of that layer, or the origin of an assignment

	lenient map[string]bool // paths of texts that are not as they will be
}

// place is where node stands; a layer of assignments has names but no lines.
func (d *decoder) place(node *yaml.Node) place {
	if d.kind == Values {
		return place{layer: d.layer, name: d.name}
	}
	return place{d.layer, d.name, node.Line, node.Column}
}

// complain reports what is wrong with the value node at path. It gives false, the
// answer of who was asked whether the value fits.
func (d *decoder) complain(path string, node *yaml.Node, message string) bool {
	return d.suggest(path, node, message, "")
}

func (d *decoder) suggest(path string, node *yaml.Node, message, suggestion string) bool {
	d.complainAt(d.place(node), path, message, suggestion)
	return false
}

// wrong reports what is wrong with the value at path, once all layers are merged: in the place of that value or of the
// nearest one above it. One mistake of a value is enough: there is no other beside one of it or below it.
func (d *decoder) wrong(path, message string) {
	if d.report.mentions(path) {
		return
	}
	at, set := d.places[path]
	for above := path; !set && above != ""; at, set = d.places[above] {
		above = above[:max(strings.LastIndexAny(above, ".["), 0)]
	}
	d.complainAt(at, path, message, "")
}

// misfit is a key that does not go with others, where it is given.
type misfit struct {
	path  string
	given bool
	why   string
}

// refuse reports all misfits.
func (d *decoder) refuse(all ...misfit) {
	for _, m := range all {
		if m.given {
			d.wrong(m.path, m.why)
		}
	}
}

func (d *decoder) complainAt(at place, path, message, suggestion string) {
	d.report.add(at.layer, Problem{at.name, at.line, at.column, path, message, suggestion})
}

func (d *decoder) top(node *yaml.Node) {
	d.value(d.root, "", node, d.into)
}

// value merges node, the value of k at path, into the Go value into. It reports
// whether node fits k; where it doesn't, it has complained.
func (d *decoder) value(k *key, path string, node *yaml.Node, into reflect.Value) bool {
	if complaint := unwanted(node); complaint != "" {
		return d.complain(path, node, complaint)
	}
	if isNull(node) {
		return true
	}
	d.places[path] = d.place(node)
	decode := map[kind]func(*key, string, *yaml.Node, reflect.Value) bool{
		group: d.group, list: d.list, textMap: d.named, openMap: d.openMap, groupMap: d.named, text: d.text,
		integer: d.integer, decimal: d.decimal, truth: d.truth, network: d.network, allowed: d.allowed, command: d.command, length: d.length,
		template: d.template,
	}[k.kind]
	return decode(k, path, node, into)
}

// unwanted names what YAML allows and a job file doesn't.
func unwanted(node *yaml.Node) string {
	switch {
	case node.Kind == yaml.AliasNode || node.Anchor != "":
		return "anchors and aliases are not allowed; write the value out"
	case node.Style&yaml.TaggedStyle != 0:
		return "tags are not allowed; quote what is to be text"
	}
	return ""
}

func unwantedName(name *yaml.Node) string {
	switch {
	case name.Kind == yaml.ScalarNode && name.Tag == mergeTag:
		return "merge keys (<<) are not allowed; write the keys out"
	case name.Kind != yaml.AliasNode && (name.Kind != yaml.ScalarNode || isNull(name)):
		return "a key must be text"
	}
	return unwanted(name)
}

func (d *decoder) group(k *key, path string, node *yaml.Node, into reflect.Value) bool {
	if node.Kind != yaml.MappingNode {
		return d.wrongType(k, path, node)
	}
	seen := make(map[string]*yaml.Node)
	for pair := range slices.Chunk(node.Content, 2) {
		d.entry(k, path, pair[0], pair[1], seen, into)
	}
	if path == "" && d.kind != Values || path != "" && !d.earlier[path] {
		d.requireKeys(k, path, node, seen)
	}
	return true
}

func (d *decoder) requireKeys(k *key, path string, node *yaml.Node, seen map[string]*yaml.Node) {
	for _, below := range k.keys {
		if given := seen[below.name]; below.required && (given == nil || isNull(given)) {
			d.complain(join(path, below.name), node, "is missing")
		}
	}
}

func (d *decoder) entry(k *key, path string, name, node *yaml.Node, seen map[string]*yaml.Node, into reflect.Value) {
	if !d.fresh(path, name, node, seen) {
		return
	}
	below := k.key(name.Value)
	if below == nil {
		d.suggest(join(path, name.Value), name, "unknown key", d.nearestKey(k, path, name.Value))
		return
	}
	inner := join(path, below.name)
	if d.kind == Defaults && (inner == "name" || inner == "task") {
		d.complain(inner, name, "belongs in a job, not in a repository's defaults")
		return
	}
	if d.kind == Operator && path == "" && inner != "version" && inner != "hooks" {
		d.complain(inner, name, "does not belong in an operator's file, which may contain only hooks")
		return
	}
	if isNull(node) && strings.HasPrefix(name.LineComment, "#") && inner == "task.issue" {
		d.suggest(inner, name, "is followed by a comment, not by a value", fmt.Sprintf("%q", name.LineComment))
		return
	}
	d.value(below, inner, node, into.Field(below.field))
}

// fresh reports whether name is a usable name that its mapping has only once.
func (d *decoder) fresh(path string, name, node *yaml.Node, seen map[string]*yaml.Node) bool {
	if complaint := unwantedName(name); complaint != "" {
		return d.complain(path, name, complaint)
	}
	inner := join(path, name.Value)
	if before := seen[name.Value]; before != nil {
		return d.complain(inner, name, fmt.Sprintf("is given twice, the first time in line %d", before.Line))
	}
	seen[name.Value] = node
	return true
}

func (d *decoder) list(k *key, path string, node *yaml.Node, into reflect.Value) bool {
	if node.Kind != yaml.SequenceNode {
		return d.wrongType(k, path, node)
	}
	if k.most > 0 && len(node.Content) > k.most {
		return d.complain(path, node, fmt.Sprintf("has more than %d", k.most))
	}
	maps.DeleteFunc(d.places, func(at string, _ place) bool { return strings.HasPrefix(at, path+"[") })
	elements, fits := reflect.MakeSlice(k.typ, 0, len(node.Content)), true
	for i, item := range node.Content {
		inner := fmt.Sprintf("%s[%d]", path, i)
		if isNull(item) {
			fits = d.complain(inner, item, "is empty")
			continue
		}
		slot := reflect.New(k.elem.typ).Elem()
		slot.Set(k.elem.defaultValue())
		fits = d.value(k.elem, inner, item, slot) && fits
		elements = reflect.Append(elements, slot)
	}
	into.Set(elements)
	return fits
}

// named merges a mapping from any names to values, name by name, and in groups key by key.
func (d *decoder) named(k *key, path string, node *yaml.Node, into reflect.Value) bool {
	if node.Kind != yaml.MappingNode {
		return d.wrongType(k, path, node)
	}
	seen := make(map[string]*yaml.Node)
	for pair := range slices.Chunk(node.Content, 2) {
		name := pair[0]
		if !d.fresh(path, name, pair[1], seen) {
			continue
		}
		inner := join(path, name.Value)
		if err := k.names.check(name.Value); err != nil {
			d.complain(inner, name, "this name "+err.Error())
			continue
		}
		if isNull(pair[1]) {
			continue
		}
		value := reflect.New(k.elem.typ).Elem()
		value.Set(k.elem.defaultValue())
		if before := into.MapIndex(reflect.ValueOf(name.Value)); before.IsValid() {
			value.Set(before)
			d.earlier[inner] = true // its keys are there, or are missing in the layer before
		}
		d.value(k.elem, inner, pair[1], value)
		into.SetMapIndex(reflect.ValueOf(name.Value), value)
	}
	return k.most == 0 || into.Len() <= k.most || d.complain(path, node, fmt.Sprintf("has more than %d", k.most))
}

// openMap takes a mapping whose keys are not ours.
func (d *decoder) openMap(k *key, path string, node *yaml.Node, into reflect.Value) bool {
	value, fits := d.plain(path, node)
	if !fits {
		return false
	}
	known, err := k.foreign.read(value)
	into.Set(reflect.ValueOf(known))
	return err == nil || d.complain(path, node, err.Error())
}
