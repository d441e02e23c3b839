package compare

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/task/job"
)

// Excess is one key with a more permissive value than allowed.
type Excess struct{ Key, Value string }

// Beyond returns the first key of made that is more permissive than in allowed, or nil. goesOn
// means that the run resumes: it publishes and uses an API key, so more keys are checked than for a
// replay.
func Beyond(made, allowed *job.Job, goesOn bool) *Excess {
	for _, value := range setupOver(made, allowed) { // before setup itself, which is held to be the same
		return &Excess{"setup[].network", value}
	}
	for _, bound := range bounds {
		if bound.onResume && !goesOn {
			continue
		}
		valueOf := func(j *job.Job) any { return job.Format().Root.Value(reflect.ValueOf(*j), bound.key).Interface() }
		for _, value := range bound.over(valueOf(made), valueOf(allowed)) {
			return &Excess{bound.key, value}
		}
	}
	return nil
}

// bound compares one key of a recorded job with the allowed job. over returns the values in excess.
type bound struct {
	key      string
	onResume bool // only for a resumed run
	over     func(made, allowed any) []string
}

var bounds = []bound{
	{"policy.sandbox", false, upTo("read-only", "workspace-write", "danger-full-access")},
	{"policy.require", false, func(made, allowed any) []string {
		if allowed == "" || made == allowed || made == "full" {
			return nil
		}
		return []string{made.(string)}
	}},
	{"policy.network", false, func(made, allowed any) []string { return networkExcess(made.(job.Network), allowed.(job.Network)) }},
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

// upTo allows the words up to the allowed one, in the order given.
func upTo(words ...string) func(made, allowed any) []string {
	return func(made, allowed any) []string {
		if is := slices.Index(words, made.(string)); is >= 0 && is <= slices.Index(words, allowed.(string)) {
			return nil
		}
		return []string{made.(string)}
	}
}

// same requires equal JSON.
func same(made, allowed any) []string {
	if asRecorded(made) == asRecorded(allowed) {
		return nil
	}
	return []string{shownValue(made)}
}

// covering requires every entry of the allowed value.
func covering(made, allowed any) []string { return within(allowed, made) }

// within returns the entries of a list or mapping missing from the allowed one.
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

// setupOver returns the first network of a setup command in excess. It must be within the policy's
// network or, for the same command, the network in the allowed job.
func setupOver(made, allowed *job.Job) []string {
	for _, step := range made.Setup {
		within := networkExcess(step.Network, allowed.Policy.Network) == nil
		for _, other := range allowed.Setup {
			within = within || other.Run == step.Run && networkExcess(step.Network, other.Network) == nil
		}
		if !within {
			return []string{step.Network.String()}
		}
	}
	return nil
}

// networkExcess returns the excess of network n over the allowed one, or nil.
func networkExcess(n, allowed job.Network) []string {
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

// asRecorded returns the value's JSON, as in a record.
func asRecorded(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("%p", &value) // equal to nothing
	}
	return string(raw)
}

func shownValue(value any) string { return strings.Trim(asRecorded(value), `"`) }
