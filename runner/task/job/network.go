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

	"gopkg.in/yaml.v3"

	"github.com/agent-ci/agent-ci/policy/reach"
)

// Network is what commands reach: one of some words, or the hosts of a list. In
// YAML and JSON it is the word, or {allow: [...]}. The zero value is "".
type Network struct {
	Mode  string    // none, loopback, full; empty where there is a list
	Allow []Allowed // of a list
	Proxy string    // of a list, or with loopback of what secrets open: inherit, or empty for none
}

// Allowed is an entry of a list: a host, or the hosts of a preset. In YAML and JSON an
// entry that is no more than a host is its text.
type Allowed struct {
	Host    string `json:"host,omitempty"` // as reach.ParseEntry reads it, or with Private reach.ParsePrivate
	Private bool   `json:"private,omitempty"`
	CA      string `json:"ca,omitempty"` // file with who vouches for the host besides the machine's own
	Preset  string `json:"preset,omitempty"`
}

// InheritProxy is the proxy of a network that is reached by that of the machine.
const InheritProxy = "inherit"

func (n Network) Listed() bool { return len(n.Allow) > 0 }

func (n Network) IsZero() bool { return n.Mode == "" && !n.Listed() }

// Inherits says that the hosts are reached by the machine's proxy.
func (n Network) Inherits() bool { return n.Proxy == InheritProxy }

// Entries are all hosts that a job gives more of than names, by the keys where they stand.
func (j *Job) Entries() iter.Seq2[string, Allowed] {
	return func(yield func(string, Allowed) bool) {
		for key, network := range j.Networks() {
			for i, entry := range network.Allow {
				if !yield(fmt.Sprintf("%s.%s[%d]", key, allowKey, i), entry) {
					return
				}
			}
		}
		for i, secret := range j.Policy.Secrets {
			for _, entry := range secret.Entries() {
				if !yield(fmt.Sprintf("policy.secrets[%d]", i), entry) {
					return
				}
			}
		}
	}
}

// Networks are those of a job that say anything, by the keys where they stand.
func (j *Job) Networks() iter.Seq2[string, Network] {
	return func(yield func(string, Network) bool) {
		if !yield("policy.network", j.Policy.Network) {
			return
		}
		for i, step := range j.Setup {
			if !step.Network.IsZero() && !yield(fmt.Sprintf("setup[%d].network", i), step.Network) {
				return
			}
		}
		for _, name := range slices.Sorted(maps.Keys(j.MCPServers)) {
			if !yield("mcp_servers."+name+".network", j.MCPServers[name].Network) {
				return
			}
		}
	}
}

// List is what the list opens.
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

// Trusts gives the entry as those of reach have it, where it names an authority.
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

// network is what a mapping stands for: without a list what secrets open, beside the
// commands' own loopback.
func (l allowedHosts) network() Network {
	if len(l.Allow) == 0 && l.Proxy != "" {
		return Network{Mode: modeLoopback, Proxy: l.Proxy}
	}
	return Network{Allow: l.Allow, Proxy: l.Proxy}
}

func (a Allowed) MarshalJSON() ([]byte, error) {
	if a == (Allowed{Host: a.Host}) {
		return json.Marshal(a.Host)
	}
	type whole Allowed
	return json.Marshal(whole(a))
}

func (a *Allowed) UnmarshalJSON(data []byte) error {
	*a = Allowed{}
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &a.Host)
	}
	type whole Allowed
	return json.Unmarshal(data, (*whole)(a))
}

const (
	modeLoopback = "loopback"
	allowKey     = "allow"
	proxyKey     = "proxy"
	// maxHosts bounds a list: each request looks through all of it.
	maxHosts = 1000
)

var (
	hostForm    = &form{about: "host, also with *. in front and a port", check: readableBy(reach.ParseEntry), pattern: `[^\s/@?#,]+`, prefix: "https://"}
	privateForm = &form{about: "host, also with a port", check: readableBy(reach.ParsePrivate), pattern: `[^\s/@?#,*]+`, prefix: "https://"}
)

// The keys of a mapping that stands for a network, and the entries of its list as text.
var (
	networkKeys = sync.OnceValue(func() *key {
		return newKey(map[string]rule{
			"allow":          {example: `[api.example.com, "*.example.org"]`},
			"allow[].host":   {filled: true}, // what it may be, the other keys of its entry say
			"allow[].ca":     {form: rulesFile, filled: true},
			"allow[].preset": {values: reach.PresetNames()},
			"proxy":          {values: []string{"", InheritProxy}},
		}, "", reflect.TypeFor[allowedHosts]())
	})
	hostKey = &key{rule: rule{form: hostForm, filled: true}, kind: text}
)

// network takes a word of k's, or a mapping with the key allow.
func (d *decoder) network(k *key, path string, node *yaml.Node, into reflect.Value) bool {
	if node.Kind == yaml.MappingNode {
		var list allowedHosts
		d.group(networkKeys(), path, node, reflect.ValueOf(&list).Elem())
		into.Set(reflect.ValueOf(list.network()))
		return !d.report.mentions(path) && (list.Allow == nil && list.Proxy != "" || d.fitList(path, node, list.Allow))
	}
	var mode string
	fits := d.text(k, path, node, reflect.ValueOf(&mode).Elem())
	into.Set(reflect.ValueOf(Network{Mode: mode}))
	return fits
}

// fitList checks a list of hosts as a whole.
func (d *decoder) fitList(path string, node *yaml.Node, list []Allowed) bool {
	if list == nil {
		return d.complain(path, node, "must have the key allow with a list of hosts")
	}
	hosts := 0
	for _, a := range list {
		hosts += max(len(reach.PresetHosts(a.Preset)), 1)
	}
	path = join(path, allowKey)
	d.refuse(
		misfit{path, len(list) == 0, "names no host; for no network at all write loopback or none instead of a list"},
		misfit{path, hosts > maxHosts, fmt.Sprintf("names more than %d hosts", maxHosts)},
	)
	return len(list) > 0 && hosts <= maxHosts
}

// allowed takes a host as text, or a mapping.
func (d *decoder) allowed(k *key, path string, node *yaml.Node, into reflect.Value) bool {
	switch node.Kind {
	case yaml.MappingNode:
		if d.group(k, path, node, into); d.report.mentions(path) {
			return false
		}
		entry := into.Interface().(Allowed)
		name, wrong := entry.misfit()
		if _, private := d.places[join(path, "private")]; private && entry.Preset != "" {
			name, wrong = "preset", standsAlone
		}
		if wrong != "" {
			d.wrong(join(path, name), wrong)
		}
		return wrong == ""
	case yaml.ScalarNode:
		return d.text(hostKey, path, node, into.FieldByName("Host"))
	}
	return d.complain(path, node, "must be "+k.kind.describe()+", not "+describeNode(node))
}

const standsAlone = "stands alone: give other hosts in entries of their own"

// misfit is what is wrong with an entry, and in which of its keys.
func (a Allowed) misfit() (key, wrong string) {
	switch {
	case a.Preset != "" && a != Allowed{Preset: a.Preset}:
		return "preset", standsAlone
	case a.Preset == "" && a.Host == "":
		return "host", "is missing; give a host, or a preset"
	}
	if _, err := a.list(); err != nil {
		return "host", err.Error()
	}
	return "", ""
}

// networkSchema is what may be written for k.
func networkSchema(schema map[string]any, k *key) {
	delete(schema, "type")
	object := func(required string, properties map[string]any, more ...string) map[string]any {
		return map[string]any{"type": "object", "additionalProperties": false, "required": append(more, required), "properties": properties}
	}
	filled := func(f *form) map[string]any { return textSchema(map[string]any{"type": "string", "minLength": 1}, f) }
	entries := []any{
		filled(hostForm),
		object("host", map[string]any{"host": filled(hostForm), "private": map[string]any{"const": false}, "ca": filled(rulesFile)}),
		object("private", map[string]any{"host": filled(privateForm), "private": map[string]any{"const": true}, "ca": filled(rulesFile)}, "host"),
		object("preset", map[string]any{"preset": map[string]any{"enum": reach.PresetNames()}}),
	}
	schema["anyOf"] = []any{
		map[string]any{"enum": k.values},
		object(allowKey, map[string]any{
			allowKey: map[string]any{"type": "array", "minItems": 1, "maxItems": maxHosts, "items": map[string]any{"anyOf": entries}},
			proxyKey: map[string]any{"enum": []string{"", InheritProxy}},
		}),
		object(proxyKey, map[string]any{proxyKey: map[string]any{"enum": []string{InheritProxy}}}),
	}
}

// fitProxies refuses a proxy to nothing.
func (d *decoder) fitProxies() {
	for path, network := range d.job.Networks() {
		if network.Inherits() && !network.Listed() && len(d.job.Policy.Secrets) == 0 {
			d.wrong(path, "must have the key allow with a list of hosts: without one, and without policy.secrets, there is nothing to reach by a proxy")
		}
	}
}
