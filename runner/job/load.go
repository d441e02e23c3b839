package job

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

type Kind int

const (
	File     Kind = iota // a job file
	Defaults             // a file with a repository's defaults: like a job, without name and task
	Values               // assignments to single keys
)

// Layer is one source of a job's keys.
type Layer struct {
	Name   string // the file's name, as messages show it; "environment", "--set"
	Kind   Kind
	Data   []byte       // YAML, of a file
	Values []Assignment // of Values
}

// Assignment sets one key. Value is taken as it stands for a key of type text,
// and read as YAML for any other: 5, 10m, true, [a, b], {name: value}.
type Assignment struct {
	Key    string // "limits.turns"; "model.headers.X-Team" for one entry of a mapping of text
	Value  string
	Origin string // the variable or flag that it came from
}

// environmentPrefix is what the variables that set keys begin with.
const environmentPrefix = "AGENT_CI_"

// variableOf is the variable that sets the key at path.
func variableOf(path string) string {
	return environmentPrefix + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

// Environment is the layer of the variables in environ (NAME=value) that are
// named after a key: AGENT_CI_LIMITS_TURNS for limits.turns. Empty ones set
// nothing. Names in reserved are somebody else's; any other AGENT_CI_ name that
// belongs to no key gives a warning.
func Environment(environ, reserved []string) (Layer, []string) {
	keys, names := make(map[string]string), []string(nil)
	for _, k := range root().settable() {
		keys[variableOf(k.path)] = k.path
		names = append(names, variableOf(k.path))
	}
	layer, warnings := Layer{Name: "environment", Kind: Values}, []string(nil)
	for _, variable := range slices.Sorted(slices.Values(environ)) {
		name, value, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, environmentPrefix) || slices.Contains(reserved, name) {
			continue
		}
		if keys[name] == "" {
			warnings = append(warnings, unknownVariable(name, slices.Concat(names, reserved)))
		} else if value != "" {
			layer.Values = append(layer.Values, Assignment{Key: keys[name], Value: value, Origin: name})
		}
	}
	return layer, warnings
}

func unknownVariable(name string, known []string) string {
	warning := printable(name) + " is set but is no setting"
	for i := range known { // the prefix would make any two of them look alike
		known[i] = strings.TrimPrefix(known[i], environmentPrefix)
	}
	if meant := Nearest(strings.TrimPrefix(name, environmentPrefix), known); meant != "" {
		warning += "; did you mean " + environmentPrefix + meant + "?"
	}
	return warning
}

// Set is the layer of --set's arguments, each key=value. The error is Problems.
func Set(assignments []string) (Layer, error) {
	layer := Layer{Name: "--set", Kind: Values}
	var problems Problems
	for _, assignment := range assignments {
		key, value, err := cutAssignment(assignment)
		if err != nil {
			problems = append(problems, Problem{File: layer.Name, Key: key, Message: err.Error()})
			continue
		}
		layer.Values = append(layer.Values, Assignment{Key: key, Value: value, Origin: layer.Name})
	}
	if len(problems) > 0 {
		return Layer{}, problems
	}
	return layer, nil
}

func cutAssignment(assignment string) (key, value string, err error) {
	key, value, found := strings.Cut(assignment, "=")
	if key = strings.TrimSpace(key); !found || key == "" {
		return "", "", fmt.Errorf("must be key=value, such as limits.turns=50")
	}
	if k, _ := find(key); value == "" && k != nil && k.kind != text {
		return key, "", errors.New("has no value after the =")
	}
	return key, value, nil
}

// find is the key at path and path's parts. It is nil where there is no such
// key. Below a mapping of text all that is left of path is one part.
func find(path string) (*key, []string) {
	k, parts := root(), []string(nil)
	for rest := path; ; {
		if k.kind == textMap {
			return k.elem, append(parts, rest)
		}
		name, below, deeper := strings.Cut(rest, ".")
		parts = append(parts, name)
		if k = k.key(name); k == nil {
			return nil, strings.Split(path, ".")
		}
		if !deeper {
			return k, parts
		}
		rest = below
	}
}

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
	d := &decoder{job: &job, report: make(report, len(layers)+1), places: make(map[string]place)}
	for i, layer := range layers {
		d.layer, d.kind = i, layer.Kind
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
