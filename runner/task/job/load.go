package job

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Load merges layers over the built-in defaults, the lowest first: what a later
// layer sets wins over an earlier one. Mappings are merged name by name, lists
// replaced whole, and null sets nothing. The error is Problems, with all the
// mistakes of all layers; a job without a task is one.
func Load(layers ...Layer) (*Job, error) { return load(layers, true) }

// LoadTemplate is Load for who has the task from elsewhere: a job without one
// is fine.
func LoadTemplate(layers ...Layer) (*Job, error) { return load(layers, false) }

func load(layers []Layer, needsTask bool) (*Job, error) {
	job := root().defaultValue().Interface().(Job)
	d := &decoder{root: root(), into: reflect.ValueOf(&job).Elem(), job: &job, report: make(report, len(layers)+1), places: make(map[string]place), earlier: make(map[string]bool)}
	for i, layer := range layers {
		d.layer, d.kind, d.kinds = i, layer.Kind, append(d.kinds, layer.Kind)
		if layer.Kind == Values {
			d.assignments(layer.Values)
		} else {
			d.file(layer)
		}
		d.chooseTask()
	}
	d.relations(needsTask)
	if problems := d.report.problems(); len(problems) > 0 {
		return nil, problems
	}
	return d.job, nil
}

func (d *decoder) file(layer Layer) {
	d.name = layer.Name
	if layer.Kind == File {
		d.jobFile = &place{d.layer, d.name, 1, 1}
	}
	node, unfit := parse(layer.Data)
	if unfit != nil {
		unfit.File = d.name
		d.report.add(d.layer, *unfit)
	}
	switch {
	case unfit != nil && node == nil:
	case node == nil || isNull(node):
		d.report.add(d.layer, Problem{File: d.name, Line: 1, Column: 1, Message: "is empty; a job begins with version: 1"})
	default:
		d.top(node)
	}
}

func (d *decoder) assignments(values []Assignment) {
	for _, a := range values {
		d.name = a.Origin
		k, parts := find(a.Key)
		if whole := networkAbove(a.Key); whole != "" {
			d.complain(a.Key, &yaml.Node{}, "is not set by itself: "+whole+" is set whole, as in "+whole+"={allow: [api.example.com]}")
			continue
		}
		node, err := a.node(k)
		if err != nil {
			d.complain(a.Key, &yaml.Node{}, err.Error())
			continue
		}
		for _, name := range slices.Backward(parts) {
			node = &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{textNode(name), node}}
		}
		d.top(node)
	}
}

// networkAbove is the key of a network that a path leads into; empty for none.
func networkAbove(path string) string {
	for end := strings.LastIndexByte(path, '.'); end > 0; end = strings.LastIndexByte(path, '.') {
		path = path[:end]
		if k, _ := find(path); k != nil && k.kind == network {
			return path
		}
	}
	return ""
}

// node is a's value for the key k; k is nil where a names none.
func (a Assignment) node(k *key) (*yaml.Node, error) {
	if k == nil || k.kind == text {
		return textNode(a.Value), nil
	}
	node, unfit := parse([]byte(a.Value))
	if unfit != nil {
		return nil, errors.New("the value " + unfit.Message)
	}
	if node == nil {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: nullTag}, nil
	}
	return node, nil
}

func textNode(s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: textTag, Style: yaml.DoubleQuotedStyle, Value: s}
}
