package job

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/agent-ci/agent-ci/policy/reach"
)

// Network is what commands reach: one of some words, or the hosts of a list. In
// YAML and JSON it is the word, or {allow: [...]}. The zero value is "".
type Network struct {
	Mode  string   // none, loopback, full; empty where there is a list
	Allow []string // hosts, as reach.ParseEntry reads them
}

func (n Network) Listed() bool { return len(n.Allow) > 0 }

func (n Network) IsZero() bool { return n.Mode == "" && !n.Listed() }

// String is the network for a reader: the word, or "allow list:" and its hosts.
func (n Network) String() string {
	if n.Listed() {
		return "allow list: " + strings.Join(n.Allow, ", ")
	}
	return n.Mode
}

type allowedHosts struct {
	Allow []string `json:"allow"`
}

func (n Network) MarshalJSON() ([]byte, error) {
	if n.Listed() {
		return json.Marshal(allowedHosts{n.Allow})
	}
	return json.Marshal(n.Mode)
}

func (n *Network) UnmarshalJSON(data []byte) error {
	*n = Network{}
	if len(data) > 0 && data[0] == '{' {
		var list allowedHosts
		err := json.Unmarshal(data, &list)
		n.Allow = list.Allow
		return err
	}
	return json.Unmarshal(data, &n.Mode)
}

const (
	allowKey = "allow"
	// maxHosts bounds a list: each request looks through all of it.
	maxHosts = 1000
)

var hostForm = &form{about: "host, also with *. in front and a port", check: readableBy(reach.ParseEntry), pattern: `[^\s/@?#,]+`}

// network takes a word of k's, or a mapping with the key allow.
func (d *decoder) network(k *key, path string, node *yaml.Node, into reflect.Value) bool {
	if node.Kind == yaml.MappingNode {
		hosts, fits := d.allowed(path, node)
		into.Set(reflect.ValueOf(Network{Allow: hosts}))
		return fits
	}
	var mode string
	fits := d.text(k, path, node, reflect.ValueOf(&mode).Elem())
	into.Set(reflect.ValueOf(Network{Mode: mode}))
	return fits
}

// allowed are the hosts of a mapping with the key allow.
func (d *decoder) allowed(path string, node *yaml.Node) (hosts []string, fits bool) {
	seen := make(map[string]*yaml.Node)
	var list *yaml.Node
	for pair := range slices.Chunk(node.Content, 2) {
		if !d.fresh(path, pair[0], pair[1], seen) {
			return nil, false
		}
		if pair[0].Value != allowKey {
			return nil, d.suggest(join(path, pair[0].Value), pair[0], "unknown key", allowKey)
		}
		list = pair[1]
	}
	if list == nil {
		return nil, d.complain(path, node, "must have the key allow with a list of hosts")
	}
	path = join(path, allowKey)
	switch {
	case list.Kind != yaml.SequenceNode:
		return nil, d.complain(path, list, `must be a list of hosts such as [api.example.com, "*.example.org"]`)
	case len(list.Content) == 0:
		return nil, d.complain(path, list, "names no host; for no network at all write loopback or none instead of a list")
	case len(list.Content) > maxHosts:
		return nil, d.complain(path, list, "names more than 1000 hosts")
	}
	into := reflect.ValueOf(&hosts).Elem()
	hostsKey := newKey(map[string]rule{path: {path: path, form: hostForm}}, path, into.Type())
	return hosts, d.value(hostsKey, path, list, into)
}

// networkSchema is what may be written for k.
func networkSchema(schema map[string]any, k *key) {
	delete(schema, "type")
	schema["anyOf"] = []any{
		map[string]any{"enum": k.values},
		map[string]any{
			"type": "object", "additionalProperties": false, "required": []string{allowKey},
			"properties": map[string]any{allowKey: map[string]any{
				"type": "array", "minItems": 1, "maxItems": maxHosts,
				"items": textSchema(map[string]any{"type": "string", "minLength": 1}, hostForm),
			}},
		},
	}
}
