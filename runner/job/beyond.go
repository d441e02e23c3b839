package job

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Excess is where a job allows more than another.
type Excess struct{ Key, Value string }

// Beyond returns the first key in which a recorded job allows more than allowed does; nil for none.
// A run that goes on publishes, and asks a model with a key: it is held to more keys than a replay.
func (j *Job) Beyond(allowed *Job, goesOn bool) *Excess {
	for _, bound := range bounds {
		if bound.goesOn && !goesOn {
			continue
		}
		for _, value := range bound.over(j, allowed) {
			return &Excess{bound.key, value}
		}
	}
	return nil
}

// bound gives what a recorded job has beyond an allowed one, under a key.
type bound struct {
	key    string
	goesOn bool // of a run that goes on alone
	over   func(made, allowed *Job) []string
}

var bounds = []bound{
	{key: "policy.sandbox", over: func(made, allowed *Job) []string {
		modes := []string{"read-only", "workspace-write", "danger-full-access"}
		if is := slices.Index(modes, made.Policy.Sandbox); is >= 0 && is <= slices.Index(modes, allowed.Policy.Sandbox) {
			return nil
		}
		return []string{made.Policy.Sandbox}
	}},
	{key: "policy.require", over: func(made, allowed *Job) []string {
		if least := allowed.Policy.Require; least == "" || made.Policy.Require == least || made.Policy.Require == "full" {
			return nil
		}
		return []string{made.Policy.Require}
	}},
	{key: "policy.network", over: func(made, allowed *Job) []string {
		return made.Policy.Network.over(allowed.Policy.Network)
	}},
	{key: "setup[].network", over: setupOver},
	{key: "policy.writable", over: func(made, allowed *Job) []string {
		return missing(made.Policy.Writable, allowed.Policy.Writable)
	}},
	{key: "policy.deny_read", over: func(made, allowed *Job) []string {
		return missing(allowed.Policy.DenyRead, made.Policy.DenyRead)
	}},
	{key: "policy.rules", over: func(made, allowed *Job) []string { return missing(allowed.Policy.Rules, made.Policy.Rules) }},
	{key: "policy.env.pass", over: func(made, allowed *Job) []string {
		return missing(made.Policy.Env.Pass, allowed.Policy.Env.Pass)
	}},
	{key: "policy.secrets", over: func(made, allowed *Job) []string { return others(made.Policy.Secrets, allowed.Policy.Secrets) }},
	{key: "git.filters", over: func(made, allowed *Job) []string { return others(made.Git.Filters, allowed.Git.Filters) }},
	{key: "hooks", over: func(made, allowed *Job) []string {
		return append(otherNames(made.Hooks, allowed.Hooks), otherNames(allowed.Hooks, made.Hooks)...)
	}},
	{key: "services", over: func(made, allowed *Job) []string { return otherNames(made.Services, allowed.Services) }},
	{key: "mcp_servers", over: func(made, allowed *Job) []string { return otherNames(made.MCPServers, allowed.MCPServers) }},
	{key: "tools.dynamic", over: func(made, allowed *Job) []string { return others(made.Tools.Dynamic, allowed.Tools.Dynamic) }},

	same("tools.hosted", func(j *Job) any { return j.Tools.Hosted }),
	same("model.base_url", func(j *Job) any { return j.Model.BaseURL }),
	same("model.api_key_env", func(j *Job) any { return j.Model.APIKeyEnv }),
	same("model.auth", func(j *Job) any { return j.Model.Auth }),
	same("model.identity", func(j *Job) any { return j.Model.Identity }),
	same("model.headers", func(j *Job) any { return j.Model.Headers }),
	same("policy.env.set", func(j *Job) any { return j.Policy.Env.Set }),
	same("policy.change", func(j *Job) any { return j.Policy.Change }),
	{key: "policy.protect", goesOn: true, over: func(made, allowed *Job) []string {
		return missing(allowed.Policy.Protect, made.Policy.Protect)
	}},
	same("setup", func(j *Job) any { return j.Setup }),
	same("verify", func(j *Job) any { return j.Verify }),
	same("on_verify_failed", func(j *Job) any { return j.OnVerifyFailed }),
	same("trust", func(j *Job) any { return j.Trust }),
	same("publish", func(j *Job) any { return j.Publish }),
	same("repository.name", func(j *Job) any { return j.Repository.Name }),
	same("pull_request.branch", func(j *Job) any { return j.PullRequest.Branch }),
	same("pull_request.commit", func(j *Job) any { return j.PullRequest.Commit }),
}

// same is the bound of a key that a run which goes on has as the allowed job has it.
func same(key string, of func(*Job) any) bound {
	return bound{key, true, func(made, allowed *Job) []string {
		if equal(of(made), of(allowed)) {
			return nil
		}
		return []string{shownValue(of(made))}
	}}
}

// setupOver are the networks of setup commands: each is within that of the policy, or of the same
// command of the allowed job.
func setupOver(made, allowed *Job) []string {
	for _, step := range made.Setup {
		within := step.Network.over(allowed.Policy.Network) == nil
		for _, other := range allowed.Setup {
			within = within || other.Run == step.Run && step.Network.over(other.Network) == nil
		}
		if !within {
			return []string{step.Network.String()}
		}
	}
	return nil
}

// over is what a network reaches beyond an allowed one; nil for nothing.
func (n Network) over(allowed Network) []string {
	modes := []string{"", "none", modeLoopback, "list", "full"}
	rank := func(n Network) int {
		if n.Listed() {
			return slices.Index(modes, "list")
		}
		return slices.Index(modes, n.Mode)
	}
	is, most := rank(n), rank(allowed)
	switch {
	case is < 0 || is > most, n.Inherits() && !allowed.Inherits() && allowed.Mode != "full":
		return []string{n.String()}
	case n.Listed() && allowed.Listed():
		return others(n.Allow, allowed.Allow)
	}
	return nil
}

// missing are those of names that are not in others.
func missing(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}

// others are those of a list, as JSON, that are not in another.
func others[T any](list, in []T) []string {
	var all []string
	for _, item := range list {
		if !slices.ContainsFunc(in, func(other T) bool { return equal(item, other) }) {
			all = append(all, shownValue(item))
		}
	}
	return all
}

// otherNames are the names of what another map does not have alike.
func otherNames[T any](of, in map[string]T) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if other, has := in[name]; !has || !equal(of[name], other) {
			all = append(all, name)
		}
	}
	return all
}

// equal compares values as a record has them.
func equal(a, b any) bool { return bytes.Equal(encoded(a), encoded(b)) }

func encoded(value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Appendf(nil, "%p", &value) // equal to nothing
	}
	return raw
}

func shownValue(value any) string { return strings.Trim(string(encoded(value)), `"`) }

// LoadRecorded reads the job of a record that somebody else may have written: with the checks of a
// job file.
func LoadRecorded(raw []byte) (*Job, error) {
	return LoadTemplate(Layer{Name: "the recorded job", Kind: File, Data: raw})
}
