package config

import (
	"errors"
	"slices"
	"strings"

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
		problem.File = layer.Name
		d.add(d.layerNumber(), *problem)
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
		d.add(d.layerNumber(), p)
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
		k, parts := d.format.Root.findPath(a.Key)
		if wholeKey := d.format.indivisibleKeyAbove(a.Key); wholeKey != nil {
			d.ReportAtNode(a.Key, &yaml.Node{}, "cannot be set alone: "+wholeKey.Path+" must be set as a whole, as in "+wholeKey.Path+"="+wholeKey.Example)
			continue
		}
		node, err := a.valueNode(k)
		if err != nil {
			d.ReportAtNode(a.Key, &yaml.Node{}, err.Error())
			continue
		}
		d.mergeValue(d.format.Root, "", NestedMapping(parts, node), d.target)
	}
}

// indivisibleKeyAbove returns the nearest key above path that must be set as a whole, or nil. Such a key
// has several notations and an example.
func (f *Format) indivisibleKeyAbove(path string) *Key {
	for end := strings.LastIndexByte(path, '.'); end > 0; end = strings.LastIndexByte(path, '.') {
		path = path[:end]
		if k := f.Root.Find(path); k != nil && k.Shape == Either && k.Example != "" {
			return k
		}
	}
	return nil
}

// valueNode returns the value of a for the key k. k is nil for an unknown key.
func (a Assignment) valueNode(k *Key) (*yaml.Node, error) {
	if k == nil || k.Shape == Text {
		return TextNode(a.Value), nil
	}
	node, problem := parseDocument([]byte(a.Value), "job")
	if problem != nil {
		return nil, errors.New("the value " + problem.Message)
	}
	if node == nil {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: nullTag}, nil
	}
	return node, nil
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
