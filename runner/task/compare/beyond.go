package compare

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/task/job"
)

// Excess is where a job allows more than another.
type Excess struct{ Key, Value string }

// Beyond returns the first key in which a job that was made allows more than allowed does; nil for none.
// A run that goes on publishes, and asks a model with a key: it is held to more keys than a replay.
func Beyond(made, allowed *job.Job, goesOn bool) *Excess {
	for _, value := range setupOver(made, allowed) { // before setup itself, which is held to be the same
		return &Excess{"setup[].network", value}
	}
	for _, bound := range bounds {
		if bound.goesOn && !goesOn {
			continue
		}
		for _, value := range bound.over(valueOf(made, bound.key), valueOf(allowed, bound.key)) {
			return &Excess{bound.key, value}
		}
	}
	return nil
}

// valueOf returns the value of a key.
func valueOf(j *job.Job, path string) any {
	k, value := job.Format().Root, reflect.ValueOf(*j)
	for name := range strings.SplitSeq(path, ".") {
		k = k.Key(name)
		value = k.Field(value)
	}
	return value.Interface()
}

// bound gives what a recorded job has under a key beyond an allowed one.
type bound struct {
	key    string
	goesOn bool // of a run that goes on alone
	over   func(made, allowed any) []string
}

var bounds = []bound{
	{"policy.sandbox", false, upTo("read-only", "workspace-write", "danger-full-access")},
	{"policy.require", false, func(made, allowed any) []string {
		if allowed == "" || made == allowed || made == "full" {
			return nil
		}
		return []string{made.(string)}
	}},
	{"policy.network", false, func(made, allowed any) []string { return over(made.(job.Network), allowed.(job.Network)) }},
	{"policy.writable", false, within},
	{"policy.deny_read", false, covering},
	{"policy.rules", false, covering},
	{"policy.env.pass", false, within},
	{"policy.secrets", false, within},
	{"git.filters", false, within},
	{"hooks", false, func(made, allowed any) []string { return append(within(made, allowed), covering(made, allowed)...) }},
	{"services", false, within},
	{"mcp_servers", false, within},
	{"tools.dynamic", false, within},

	{"tools.hosted", true, same},
	{"model.base_url", true, same},
	{"model.api_key_env", true, same},
	{"model.auth", true, same},
	{"model.identity", true, same},
	{"model.headers", true, same},
	{"policy.env.set", true, same},
	{"policy.change", true, same},
	{"policy.protect", true, covering},
	{"policy.silenced", true, upTo("refuse", "draft", "show")},
	{"policy.workflow_risk", true, upTo("refuse", "draft", "show")},
	{"setup", true, same},
	{"verify", true, same},
	{"on_verify_failed", true, same},
	{"trust", true, same},
	{"publish", true, same},
	{"repository.name", true, same},
	{"pull_request.branch", true, same},
	{"pull_request.commit", true, same},
}

// upTo allows what comes no later in a list of words than the allowed one.
func upTo(words ...string) func(made, allowed any) []string {
	return func(made, allowed any) []string {
		if is := slices.Index(words, made.(string)); is >= 0 && is <= slices.Index(words, allowed.(string)) {
			return nil
		}
		return []string{made.(string)}
	}
}

// same allows what is alike as a record has it.
func same(made, allowed any) []string {
	if asRecorded(made) == asRecorded(allowed) {
		return nil
	}
	return []string{shownValue(made)}
}

// covering allows what has all that the allowed value has.
func covering(made, allowed any) []string { return within(allowed, made) }

// within allows entries of a list or a mapping that are in the allowed one.
func within(made, allowed any) (more []string) {
	is, may := reflect.ValueOf(made), reflect.ValueOf(allowed)
	if is.Kind() == reflect.Map {
		for _, name := range slices.SortedFunc(slices.Values(is.MapKeys()), func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) }) {
			if other := may.MapIndex(name); !other.IsValid() || asRecorded(is.MapIndex(name).Interface()) != asRecorded(other.Interface()) {
				more = append(more, name.String())
			}
		}
		return more
	}
	known := map[string]bool{}
	for i := range may.Len() {
		known[asRecorded(may.Index(i).Interface())] = true
	}
	for i := range is.Len() {
		if value := is.Index(i).Interface(); !known[asRecorded(value)] {
			more = append(more, shownValue(value))
		}
	}
	return more
}

// setupOver are the networks of setup commands: each is within that of the policy, or of the same
// command of the allowed job.
func setupOver(made, allowed *job.Job) []string {
	for _, step := range made.Setup {
		within := over(step.Network, allowed.Policy.Network) == nil
		for _, other := range allowed.Setup {
			within = within || other.Run == step.Run && over(step.Network, other.Network) == nil
		}
		if !within {
			return []string{step.Network.String()}
		}
	}
	return nil
}

// over returns what a network reaches beyond an allowed one; nil for nothing.
func over(n, allowed job.Network) []string {
	modes := []string{"", "none", "loopback", "list", "full"}
	rank := func(n job.Network) int {
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
		return within(n.Allow, allowed.Allow)
	}
	return nil
}

// asRecorded is a value as a record has it.
func asRecorded(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("%p", &value) // equal to nothing
	}
	return string(raw)
}

func shownValue(value any) string { return strings.Trim(asRecorded(value), `"`) }
