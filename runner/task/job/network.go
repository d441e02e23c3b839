package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/task/config"

	"gopkg.in/yaml.v3"

	"github.com/agent-ci/agent-ci/policy/reach"
)

// Network is the network access of commands: a word, or a list of hosts. In YAML and JSON it is the
// word, or {allow: [...]}. The zero value is "".
type Network struct {
	// Mode is none, loopback or full; empty beside a list.
	Mode  string        `json:"-" config:"text"`
	Allow []AllowedHost `json:"allow,omitempty" config:"nonempty" form:"host" most:"max_hosts" example:"[api.example.com, \"*.example.org\"]" instead:"for no network at all write loopback or none"`
	// Proxy is for a list, or with loopback for the hosts of secrets.
	Proxy string `json:"proxy,omitempty" values:"|inherit"`
}

// AllowedHost is an entry of a list: a preset, or a host. In YAML and JSON a host alone is plain text.
type AllowedHost struct {
	// Host is as reach.ParseEntry reads it, or with Private reach.ParsePrivate.
	Host    string `json:"host,omitempty" config:"text,required" form:"any_host"`
	Private bool   `json:"private,omitempty"`
	// CA is a file with further certificate authorities for the host.
	CA     string `json:"ca,omitempty" config:"nonempty" form:"rules_file"`
	Preset string `json:"preset,omitempty" config:"alone" values:"$presets"`
}

// InheritProxy is the value of proxy that selects the machine's proxy.
const InheritProxy = "inherit"

func (n Network) HasList() bool { return len(n.Allow) > 0 }

func (n Network) IsZero() bool { return n.Mode == "" && !n.HasList() }

// UsesMachineProxy reports whether requests go through the machine's proxy.
func (n Network) UsesMachineProxy() bool { return n.Proxy == InheritProxy }

// AllowedHosts yields the host entries of all networks and secrets, each with its key.
func (j *Job) AllowedHosts() iter.Seq2[string, AllowedHost] {
	return func(yield func(string, AllowedHost) bool) {
		for key, network := range j.Networks() {
			for i, entry := range network.Allow {
				if !yield(config.JoinPath(key, allowKey, i), entry) {
					return
				}
			}
		}
		for i, secret := range j.Policy.Secrets {
			for _, entry := range secret.AllowedHosts() {
				if !yield(config.JoinPath("policy.secrets", i), entry) {
					return
				}
			}
		}
	}
}

// Networks yields policy.network and the networks of setup steps and MCP servers, each with its key.
func (j *Job) Networks() iter.Seq2[string, Network] {
	return func(yield func(string, Network) bool) {
		if !yield("policy.network", j.Policy.Network) {
			return
		}
		for i, step := range j.Setup {
			if !step.Network.IsZero() && !yield(config.JoinPath("setup", i, "network"), step.Network) {
				return
			}
		}
		for _, name := range slices.Sorted(maps.Keys(j.MCPServers)) {
			if !yield(config.JoinPath("mcp_servers", name, "network"), j.MCPServers[name].Network) {
				return
			}
		}
	}
}

// ReachList returns the hosts opened by n, with presets expanded.
func (n Network) ReachList() (reach.List, error) {
	var all reach.List
	for _, a := range n.Allow {
		list, err := a.reachList()
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// reachList returns the host of the entry, or those of its preset. The error completes a sentence about it.
func (a AllowedHost) reachList() (reach.List, error) {
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

// EntryWithCA returns the entry and its CA file. ok is false without a CA, and for presets and invalid hosts.
func (a AllowedHost) EntryWithCA() (entry reach.Entry, file string, ok bool) {
	list, err := a.reachList()
	if err != nil || a.CA == "" || len(list) != 1 {
		return reach.Entry{}, "", false
	}
	return list[0], a.CA, true
}

// String returns the mode, or "allow list: " and the entries.
func (n Network) String() string {
	if !n.HasList() {
		return n.Mode
	}
	entries := make([]string, len(n.Allow))
	for i, a := range n.Allow {
		entries[i] = a.String()
	}
	all := "allow list: " + strings.Join(entries, ", ")
	if n.UsesMachineProxy() {
		all += "; by the machine's proxy"
	}
	return all
}

func (a AllowedHost) String() string {
	if a.Preset != "" {
		return "preset " + a.Preset
	}
	var remarks []string
	if a.Private {
		remarks = append(remarks, "private")
	}
	if a.CA != "" {
		remarks = append(remarks, "ca "+a.CA)
	}
	if len(remarks) == 0 {
		return a.Host
	}
	return a.Host + " (" + strings.Join(remarks, ", ") + ")"
}

// networkMapping is a network written as a mapping.
type networkMapping Network

func (n Network) MarshalJSON() ([]byte, error) {
	if n.HasList() || n.UsesMachineProxy() {
		return json.Marshal(networkMapping(n))
	}
	return json.Marshal(n.Mode)
}

func (n *Network) UnmarshalJSON(data []byte) error {
	*n = Network{}
	if len(data) > 0 && data[0] == '{' {
		err := json.Unmarshal(data, (*networkMapping)(n))
		n.setModeForProxy()
		return err
	}
	return json.Unmarshal(data, &n.Mode)
}

// setModeForProxy sets loopback for a proxy without a list: commands then reach the hosts of secrets.
func (n *Network) setModeForProxy() {
	if !n.HasList() && n.Proxy != "" {
		n.Mode = modeLoopback
	}
}

// entryMapping is an entry written as a mapping.
type entryMapping AllowedHost

func (a AllowedHost) MarshalJSON() ([]byte, error) {
	if a == (AllowedHost{Host: a.Host}) {
		return json.Marshal(a.Host)
	}
	return json.Marshal(entryMapping(a))
}

func (a *AllowedHost) UnmarshalJSON(data []byte) error {
	*a = AllowedHost{}
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &a.Host)
	}
	return json.Unmarshal(data, (*entryMapping)(a))
}

const (
	modeLoopback = "loopback"
	allowKey     = "allow"
	// maxHosts bounds a list: each request looks through all of it.
	maxHosts = 1000
)

// DescribeNotations implements config.MultiNotation.
func (*Network) DescribeNotations() string { return "one of its words, or a list of hosts" }

// CheckValue implements config.MultiNotation.
func (n *Network) CheckValue(d *config.Decoder, path string, node *yaml.Node) {
	n.setModeForProxy()
	if node.Kind == yaml.MappingNode && !n.HasList() && !n.UsesMachineProxy() {
		d.Report(path, "must have the key allow with a list of hosts")
	}
	hosts := 0
	for _, a := range n.Allow {
		hosts += max(len(reach.PresetHosts(a.Preset)), 1)
	}
	d.ReportIf(hosts > maxHosts, config.JoinPath(path, allowKey), fmt.Sprintf("names more than %d hosts", maxHosts))
}

// DescribeNotations implements config.MultiNotation.
func (*AllowedHost) DescribeNotations() string {
	return "a host, or a mapping such as {host: db.example.org, private: true} or {preset: npm}"
}

// CheckValue implements config.MultiNotation.
func (a *AllowedHost) CheckValue(d *config.Decoder, path string, _ *yaml.Node) {
	if _, err := a.reachList(); err != nil {
		d.Report(config.JoinPath(path, "host"), err.Error())
	}
}
