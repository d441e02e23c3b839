package config

import (
	"slices"
	"strings"
)

type LayerKind int

const (
	FileLayer     LayerKind = iota // a job file
	DefaultsLayer                  // a file with a repository's defaults: like a job, without name and task
	ValuesLayer                    // assignments to single keys
	OperatorLayer                  // an operator's file: hooks, and nothing else
)

// Layer is one source of a job's keys.
type Layer struct {
	Name   string // the file's name, as messages show it; "environment", "--set"
	Kind   LayerKind
	Data   []byte       // YAML, of a file
	Values []Assignment // of Values
}

// Assignment sets one key. For a key of type text, Value is the text itself. For any other key it
// is YAML: 5, 10m, true, [a, b], {name: value}.
type Assignment struct {
	Key    string // "limits.turns"; "model.headers.X-Team" for one entry of a mapping of text
	Value  string
	Origin string // the variable or flag that it came from
}

// environmentPrefix is the prefix of all variables that set keys.
const environmentPrefix = "AGENT_CI_"

// VariableOf returns the name of the variable for the key at path.
func VariableOf(path string) string {
	return environmentPrefix + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

// Environment returns a layer from the variables in environ (NAME=value) named after a key:
// AGENT_CI_LIMITS_TURNS for limits.turns. Empty variables set nothing. It ignores the names in
// reserved, and returns a warning for any other AGENT_CI_ name without a key.
func (f *Format) Environment(environ, reserved []string) (layer Layer, warnings []string) {
	var names []string
	settable := f.Root.SettableKeys()
	for _, k := range settable {
		names = append(names, VariableOf(k.Path))
	}
	layer = Layer{Name: "environment", Kind: ValuesLayer}
	for _, variable := range slices.Sorted(slices.Values(environ)) {
		name, value, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, environmentPrefix) || slices.Contains(reserved, name) {
			continue
		}
		if i := slices.Index(names, name); i < 0 {
			warnings = append(warnings, warnUnknownVariable(name, slices.Concat(names, reserved)))
		} else if value != "" {
			layer.Values = append(layer.Values, Assignment{Key: settable[i].Path, Value: value, Origin: name})
		}
	}
	return layer, warnings
}

// warnUnknownVariable returns a warning about a variable that sets no key. It suggests the most similar
// known name. It shortens the names in known.
func warnUnknownVariable(name string, known []string) string {
	warning := makePrintable(name) + " is set but is no setting"
	for i := range known { // the prefix would make any two of them look alike
		known[i] = strings.TrimPrefix(known[i], environmentPrefix)
	}
	if meant := Nearest(strings.TrimPrefix(name, environmentPrefix), known); meant != "" {
		warning += "; did you mean " + environmentPrefix + meant + "?"
	}
	return warning
}

// SetLayer returns the layer of --set's arguments, each key=value. An argument without a key or without = becomes
// an assignment to no key, which Add reports.
func SetLayer(assignments ...string) Layer {
	layer := Layer{Name: "--set", Kind: ValuesLayer}
	for _, assignment := range assignments {
		key, value, found := strings.Cut(assignment, "=")
		if !found {
			key = ""
		}
		layer.Values = append(layer.Values, Assignment{Key: strings.TrimSpace(key), Value: value, Origin: layer.Name})
	}
	return layer
}
