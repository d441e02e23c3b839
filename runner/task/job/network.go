package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/runner/task/config"
	"github.com/agent-ci/agent-ci/runner/task/form"

	"gopkg.in/yaml.v3"

	"github.com/agent-ci/agent-ci/policy/reach"
)

// Network is the network access of commands: a word, or a list of hosts. In YAML and JSON it is the
// word, or {allow: [...]}. The zero value is "".
type Network struct {
	Mode  string    // none, loopback, full; empty where there is a list
	Allow []Allowed // of a list
	Proxy string    // for a list, or with loopback for the hosts of secrets: inherit, or empty for none
}

// Allowed is one entry of a list: a host, or a preset of hosts. In YAML and JSON an entry with a
// host alone is plain text.
type Allowed struct {
	Host    string `json:"host,omitempty"` // as reach.ParseEntry reads it, or with Private reach.ParsePrivate
	Private bool   `json:"private,omitempty"`
	CA      string `json:"ca,omitempty"` // file with who vouches for the host besides the machine's own
	Preset  string `json:"preset,omitempty"`
}

// InheritProxy is the value of proxy that selects the machine's proxy.
const InheritProxy = "inherit"

func (n Network) Listed() bool { return len(n.Allow) > 0 }

func (n Network) IsZero() bool { return n.Mode == "" && !n.Listed() }

// Inherits reports whether requests go through the machine's proxy.
func (n Network) Inherits() bool { return n.Proxy == InheritProxy }

// Entries yields the host entries of all networks and secrets, each with its key.
func (j *Job) Entries() iter.Seq2[string, Allowed] {
	return func(yield func(string, Allowed) bool) {
		for key, network := range j.Networks() {
			for i, entry := range network.Allow {
				if !yield(config.At(key, allowKey, i), entry) {
					return
				}
			}
		}
		for i, secret := range j.Policy.Secrets {
			for _, entry := range secret.Entries() {
				if !yield(config.At("policy.secrets", i), entry) {
					return
				}
			}
		}
	}
}

// Networks yields policy.network and the networks set by setup steps and MCP servers, each with its
// key.
func (j *Job) Networks() iter.Seq2[string, Network] {
	return func(yield func(string, Network) bool) {
		goesOn := yield("policy.network", j.Policy.Network)
		for i, step := range j.Setup {
			goesOn = goesOn && (step.Network.IsZero() || yield(config.At("setup", i, "network"), step.Network))
		}
		for _, name := range slices.Sorted(maps.Keys(j.MCPServers)) {
			goesOn = goesOn && yield(config.At("mcp_servers", name, "network"), j.MCPServers[name].Network)
		}
	}
}

// List returns the hosts opened by n, with presets expanded.
func (n Network) List() (reach.List, error) {
	var all reach.List
	for _, a := range n.Allow {
		list, err := a.list()
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

func (a Allowed) list() (reach.List, error) {
	switch {
	case a.Preset != "":
		hosts := reach.PresetHosts(a.Preset)
		if hosts == nil {
			return nil, errors.New("is not a known preset")
		}
		return reach.ParseList(hosts)
	case a.Private:
		e, err := reach.ParsePrivate(a.Host)
		return reach.List{e}, err
	}
	return reach.ParseList([]string{a.Host})
}

// Trusts returns the entry and its CA file. It is false without a CA, and for entries that are not
// a single valid host.
func (a Allowed) Trusts() (of reach.Entry, file string, ok bool) {
	list, err := a.list()
	if err != nil || a.CA == "" || len(list) != 1 {
		return reach.Entry{}, "", false
	}
	return list[0], a.CA, true
}

// String is the network for a reader: the word, or "allow list:" and its entries.
func (n Network) String() string {
	if !n.Listed() {
		return n.Mode
	}
	entries := make([]string, len(n.Allow))
	for i, a := range n.Allow {
		entries[i] = a.String()
	}
	all := "allow list: " + strings.Join(entries, ", ")
	if n.Inherits() {
		all += "; by the machine's proxy"
	}
	return all
}

func (a Allowed) String() string {
	if a.Preset != "" {
		return "preset " + a.Preset
	}
	var more []string
	if a.Private {
		more = append(more, "private")
	}
	if a.CA != "" {
		more = append(more, "ca "+a.CA)
	}
	if len(more) == 0 {
		return a.Host
	}
	return a.Host + " (" + strings.Join(more, ", ") + ")"
}

type allowedHosts struct {
	Allow []Allowed `json:"allow,omitempty"`
	Proxy string    `json:"proxy,omitempty"`
}

func (n Network) MarshalJSON() ([]byte, error) {
	if n.Listed() || n.Inherits() {
		return json.Marshal(allowedHosts{n.Allow, n.Proxy})
	}
	return json.Marshal(n.Mode)
}

func (n *Network) UnmarshalJSON(data []byte) error {
	*n = Network{}
	if len(data) > 0 && data[0] == '{' {
		var list allowedHosts
		err := json.Unmarshal(data, &list)
		*n = list.network()
		return err
	}
	return json.Unmarshal(data, &n.Mode)
}

// network converts the mapping. With a proxy but no list, commands reach their own loopback and the
// hosts of secrets.
func (l allowedHosts) network() Network {
	if len(l.Allow) == 0 && l.Proxy != "" {
		return Network{Mode: modeLoopback, Proxy: l.Proxy}
	}
	return Network{Allow: l.Allow, Proxy: l.Proxy}
}

// wholeEntry is an entry written as a mapping.
type wholeEntry Allowed

func (a Allowed) MarshalJSON() ([]byte, error) {
	if a == (Allowed{Host: a.Host}) {
		return json.Marshal(a.Host)
	}
	return json.Marshal(wholeEntry(a))
}

func (a *Allowed) UnmarshalJSON(data []byte) error {
	*a = Allowed{}
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &a.Host)
	}
	return json.Unmarshal(data, (*wholeEntry)(a))
}

const (
	modeLoopback = "loopback"
	allowKey     = "allow"
	proxyKey     = "proxy"
	// maxHosts bounds a list: each request looks through all of it.
	maxHosts = 1000
)

var (
	hostForm    = (&form.Form{Check: form.ReadableBy(reach.ParseEntry), Pattern: `[^\s/@?#,]+`}).Without("https://")
	privateForm = (&form.Form{Check: form.ReadableBy(reach.ParsePrivate), Pattern: `[^\s/@?#,*]+`}).Without("https://")
)

// allowExample is a list of hosts.
const allowExample = "{allow: [api.example.com]}"

// networkKeys describes a network written as a mapping, entryKeys an entry of its list.
var (
	networkKeys = sync.OnceValue(func() *config.Key {
		return config.NewKey([]config.Rule{
			{Path: "", Suggest: func(string) string { return allowKey }},
			{Path: allowKey, Example: `[api.example.com, "*.example.org"]`},
			{Path: proxyKey, Values: []string{"", InheritProxy}},
		}, reflect.TypeFor[allowedHosts]())
	})
	entryKeys = sync.OnceValue(func() *config.Key {
		return config.NewKey([]config.Rule{
			{Path: "host", NonEmpty: true}, // the other keys of the entry decide on its form
			{Path: "ca", Form: rulesFile, NonEmpty: true},
			{Path: "preset", Values: reach.PresetNames()},
		}, reflect.TypeFor[wholeEntry]())
	})
	hostKey = &config.Key{Rule: config.Rule{Form: hostForm, NonEmpty: true}, Shape: config.Text}
)

// Words implements config.Custom.
func (*Network) Words() string { return "one of its words, or a list of hosts" }

// DecodeKey implements config.Custom: it takes a word of k's, or a mapping with the key allow.
func (n *Network) DecodeKey(d *config.Decoder, k *config.Key, path string, node *yaml.Node) bool {
	if node.Kind != yaml.MappingNode {
		*n = Network{}
		return d.Text(k, path, node, &n.Mode)
	}
	var list allowedHosts
	d.Value(networkKeys(), path, node, &list)
	if *n = list.network(); d.HasProblem(path) || list.Allow == nil && list.Proxy != "" {
		return !d.HasProblem(path)
	}
	if list.Allow == nil {
		return d.Complain(path, node, "must have the key allow with a list of hosts")
	}
	hosts := 0
	for _, a := range list.Allow {
		hosts += max(len(reach.PresetHosts(a.Preset)), 1)
	}
	path = config.At(path, allowKey)
	d.WrongIf(hosts == 0, path, "names no host; for no network at all write loopback or none instead of a list")
	d.WrongIf(hosts > maxHosts, path, fmt.Sprintf("names more than %d hosts", maxHosts))
	return !d.HasProblem(path)
}

// Words implements config.Custom.
func (*Allowed) Words() string {
	return "a host, or a mapping such as {host: db.example.org, private: true} or {preset: npm}"
}

// DecodeKey implements config.Custom: it takes a host as text, or a mapping.
func (a *Allowed) DecodeKey(d *config.Decoder, k *config.Key, path string, node *yaml.Node) bool {
	switch node.Kind {
	case yaml.MappingNode:
		if d.Value(entryKeys(), path, node, (*wholeEntry)(a)); d.HasProblem(path) {
			return false
		}
		name, wrong := a.misfit()
		if a.Preset != "" && d.IsSet(config.At(path, "private")) {
			name, wrong = "preset", presetAlone
		}
		if wrong != "" {
			d.Wrong(config.At(path, name), wrong)
		}
		return wrong == ""
	case yaml.ScalarNode:
		return d.Text(hostKey, path, node, &a.Host)
	}
	return d.Complain(path, node, "must be "+k.Words()+", not "+config.DescribeNode(node))
}

const presetAlone = "stands alone: give other hosts in entries of their own"

// misfit returns the key of the entry's first mistake, and a message. Both are empty for a valid
// entry.
func (a Allowed) misfit() (key, wrong string) {
	switch {
	case a.Preset != "" && a != Allowed{Preset: a.Preset}:
		return "preset", presetAlone
	case a.Preset == "" && a.Host == "":
		return "host", "is missing; give a host, or a preset"
	}
	if _, err := a.list(); err != nil {
		return "host", err.Error()
	}
	return "", ""
}

// DescribeKey implements config.Custom.
func (*Network) DescribeKey(k *config.Key, schema map[string]any) {
	schema["anyOf"] = []any{
		map[string]any{"enum": k.Values},
		object(allowKey, map[string]any{
			allowKey: map[string]any{"type": "array", "minItems": 1, "maxItems": maxHosts, "items": entrySchema()},
			proxyKey: map[string]any{"enum": []string{"", InheritProxy}},
		}),
		object(proxyKey, map[string]any{proxyKey: map[string]any{"enum": []string{InheritProxy}}}),
	}
}

// DescribeKey implements config.Custom.
func (*Allowed) DescribeKey(_ *config.Key, schema map[string]any) { maps.Copy(schema, entrySchema()) }

func object(required string, properties map[string]any, more ...string) map[string]any {
	return map[string]any{"type": "object", "additionalProperties": false, "required": append(more, required), "properties": properties}
}

func entrySchema() map[string]any {
	filled := func(f *form.Form) map[string]any {
		return config.TextSchema(map[string]any{"type": "string", "minLength": 1}, f)
	}
	return map[string]any{"anyOf": []any{
		filled(hostForm),
		object("host", map[string]any{"host": filled(hostForm), "private": map[string]any{"const": false}, "ca": filled(rulesFile)}),
		object("private", map[string]any{"host": filled(privateForm), "private": map[string]any{"const": true}, "ca": filled(rulesFile)}, "host"),
		object("preset", map[string]any{"preset": map[string]any{"enum": reach.PresetNames()}}),
	}}
}

// fitProxies refuses a proxy to nothing.
func (d *checks) fitProxies() {
	for key, n := range d.job.Networks() {
		d.WrongIf(n.Inherits() && !n.Listed() && len(d.job.Policy.Secrets) == 0, key, "must have the key allow with a list of hosts: without one, and without policy.secrets, there is nothing to reach by a proxy")
	}
}
