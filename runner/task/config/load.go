package config

import (
	"cmp"
	"errors"
	"slices"

	"gopkg.in/yaml.v3"
)

// Add merges a layer.
func (d *Decoder) Add(layer Layer) {
	d.beginLayer(layer.Name, layer.Kind)
	if layer.Kind == ValuesLayer {
		d.mergeAssignments(layer.Values)
		return
	}
	node, problem := d.format.Parse(layer.Data)
	if problem != nil {
		problem.File, problem.layer = layer.Name, d.layerNumber()
		d.add(*problem)
	}
	if node != nil {
		d.mergeValue(d.format.Root, "", node, d.target)
	}
}

// AddNode merges a parsed document.
func (d *Decoder) AddNode(name string, node *yaml.Node) {
	d.beginLayer(name, FileLayer)
	d.mergeValue(d.format.Root, "", node, d.target)
}

// AddProblems adds mistakes of another file, as a layer of its own.
func (d *Decoder) AddProblems(problems ...Problem) {
	d.beginLayer("", ValuesLayer)
	for _, p := range problems {
		p.layer = d.layerNumber()
		d.add(p)
	}
}

// beginLayer starts the next layer. Values and problems added from now on belong to it.
func (d *Decoder) beginLayer(name string, kind LayerKind) {
	d.layers, d.currentName = append(d.layers, Layer{Name: name, Kind: kind}), name
}

// mergeAssignments merges assignments such as limits.turns=5. Each counts as a file with that key alone.
func (d *Decoder) mergeAssignments(values []Assignment) {
	for _, a := range values {
		d.currentName = a.Origin
		node, err := d.format.assignmentNode(a)
		if err != nil {
			d.ReportAtNode(a.Key, &yaml.Node{}, err.Error())
			continue
		}
		d.mergeValue(d.format.Root, "", node, d.target)
	}
}

// assignmentNode returns a document with the key of a alone.
func (f *Format) assignmentNode(a Assignment) (*yaml.Node, error) {
	k, names := f.Root.findPath(a.Key)
	isBelowWholeKey, isUnknown := names == nil, k == nil
	switch {
	case a.Key == "":
		return nil, errors.New("must be key=value, such as limits.turns=50")
	case isBelowWholeKey:
		return nil, errors.New("cannot be set alone: " + k.Path + " must be set as a whole, as in " + k.Path + "=" + k.Example)
	case isUnknown || k.Shape == Text:
		return NestedMapping(names, TextNode(a.Value)), nil
	case a.Value == "":
		return nil, errors.New("has no value after the =")
	}
	node, problem := parseDocument([]byte(a.Value), "job")
	if problem != nil {
		return nil, errors.New("the value " + problem.Message)
	}
	return NestedMapping(names, cmp.Or(node, &yaml.Node{Kind: yaml.ScalarNode, Tag: nullTag})), nil
}

// TextNode returns a node with the text s, unchanged.
func TextNode(s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: textTag, Style: yaml.DoubleQuotedStyle, Value: s}
}

// NestedMapping returns a mapping for each name, with node as the value of the last one.
func NestedMapping(names []string, node *yaml.Node) *yaml.Node {
	for _, name := range slices.Backward(names) {
		node = &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{TextNode(name), node}}
	}
	return node
}
