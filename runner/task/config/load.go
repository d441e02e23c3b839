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
	if layer.Kind == Values {
		d.assignments(layer.Values)
		return
	}
	node, unfit := d.format.Parse(layer.Data)
	if unfit != nil {
		unfit.File = layer.Name
		d.add(d.layer(), *unfit)
	}
	if node != nil {
		d.value(d.format.Root, "", node, d.into)
	}
}

// AddNode merges a parsed document.
func (d *Decoder) AddNode(name string, node *yaml.Node) {
	d.beginLayer(name, File)
	d.value(d.format.Root, "", node, d.into)
}

// AddProblems adds mistakes of another file, as a layer of its own.
func (d *Decoder) AddProblems(problems ...Problem) {
	d.beginLayer("", Values)
	for _, p := range problems {
		d.add(d.layer(), p)
	}
}

// beginLayer makes a layer the one that problems are of.
func (d *Decoder) beginLayer(name string, kind Kind) {
	d.layers, d.name = append(d.layers, Layer{Name: name, Kind: kind}), name
}

// assignments decodes settings of single keys, such as limits.turns=5: each as a file with that key alone.
func (d *Decoder) assignments(values []Assignment) {
	for _, a := range values {
		d.name = a.Origin
		k, parts := d.format.Root.find(a.Key)
		if whole := d.format.customAbove(a.Key); whole != nil {
			d.Complain(a.Key, &yaml.Node{}, "cannot be set alone: "+whole.Path+" must be set as a whole, as in "+whole.Path+"="+whole.Example)
			continue
		}
		node, err := a.node(k)
		if err != nil {
			d.Complain(a.Key, &yaml.Node{}, err.Error())
			continue
		}
		d.value(d.format.Root, "", Nested(parts, node), d.into)
	}
}

// customAbove returns the custom key above path, or nil.
func (f *Format) customAbove(path string) *Key {
	for end := strings.LastIndexByte(path, '.'); end > 0; end = strings.LastIndexByte(path, '.') {
		path = path[:end]
		if k := f.Root.At(path); k != nil && k.Shape == Either && k.Example != "" {
			return k
		}
	}
	return nil
}

// node returns the value of a for the key k. k is nil for an unknown key.
func (a Assignment) node(k *Key) (*yaml.Node, error) {
	if k == nil || k.Shape == Text {
		return TextNode(a.Value), nil
	}
	node, unfit := parse([]byte(a.Value), "job")
	if unfit != nil {
		return nil, errors.New("the value " + unfit.Message)
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

// Nested returns a mapping for each name, with node as the value of the last one.
func Nested(names []string, node *yaml.Node) *yaml.Node {
	for _, name := range slices.Backward(names) {
		node = &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{TextNode(name), node}}
	}
	return node
}
