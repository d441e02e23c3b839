package compare

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/task/job"
)

// Excess is a job key whose recorded value permits more than the allowed job does.
type Excess struct{ Key, Value string }

// FirstExcess returns the first key of recorded that permits more than in allowed, or nil. If the run resumes,
// more keys are compared than for a replay, because it also publishes and uses an API key.
func FirstExcess(recorded, allowed *job.Job, resumes bool) *Excess {
	// Checked before the key setup, which must be equal: this message is more exact.
	if network := excessiveSetupNetwork(recorded, allowed); network != nil {
		return &Excess{"setup[].network", network.String()}
	}
	compared := bounds
	if resumes {
		compared = slices.Concat(bounds, boundsOfResume)
	}
	for _, bound := range compared {
		valueOf := func(j *job.Job) any { return job.Format().Root.Value(reflect.ValueOf(*j), bound.key).Interface() }
		for _, value := range bound.excess(valueOf(recorded), valueOf(allowed)) {
			return &Excess{bound.key, value}
		}
	}
	return nil
}

// bound compares one key of a recorded job with that of the allowed job. excess returns the recorded values
// that exceed the allowed one, or nil.
type bound struct {
	key    string
	excess func(recorded, allowed any) []string
}

var bounds = []bound{
	{"policy.sandbox", atMostWord("read-only", "workspace-write", "danger-full-access")},
	{"policy.require", func(recorded, allowed any) []string {
		if allowed == "" || recorded == allowed || recorded == "full" {
			return nil
		}
		return []string{recorded.(string)}
	}},
	{"policy.network", func(recorded, allowed any) []string {
		return networkExcess(recorded.(job.Network), allowed.(job.Network))
	}},
	{"policy.writable", addedEntries},
	{"policy.deny_read", droppedEntries},
	{"policy.rules", droppedEntries},
	{"policy.env.pass", addedEntries},
	{"policy.secrets", addedEntries},
	{"git.filters", addedEntries},
	{"hooks", func(recorded, allowed any) []string {
		return append(addedEntries(recorded, allowed), droppedEntries(recorded, allowed)...)
	}},
	{"services", addedEntries},
	{"mcp_servers", addedEntries},
	{"tools.dynamic", addedEntries},
}

// boundsOfResume are the further bounds of a run that resumes.
var boundsOfResume = []bound{
	{"tools.hosted", requireEqual},
	{"model.base_url", requireEqual},
	{"model.api_key_env", requireEqual},
	{"model.auth", requireEqual},
	{"model.identity", requireEqual},
	{"model.headers", requireEqual},
	{"policy.env.set", requireEqual},
	{"policy.change", requireEqual},
	{"policy.protect", droppedEntries},
	{"policy.silenced", atMostWord("refuse", "draft", "show")},
	{"policy.workflow_risk", atMostWord("refuse", "draft", "show")},
	{"setup", requireEqual},
	{"verify", requireEqual},
	{"on_verify_failed", requireEqual},
	{"trust", requireEqual},
	{"publish", requireEqual},
	{"repository.name", requireEqual},
	{"pull_request.branch", requireEqual},
	{"pull_request.commit", requireEqual},
}

// atMostWord returns a comparison for words ordered from strict to permissive: no word after the allowed
// one is permitted.
func atMostWord(words ...string) func(recorded, allowed any) []string {
	return func(recorded, allowed any) []string {
		if index := slices.Index(words, recorded.(string)); index >= 0 && index <= slices.Index(words, allowed.(string)) {
			return nil
		}
		return []string{recorded.(string)}
	}
}

// requireEqual permits only a value with the same JSON as the allowed one.
func requireEqual(recorded, allowed any) []string {
	if comparableJSON(recorded) == comparableJSON(allowed) {
		return nil
	}
	return []string{shownValue(recorded)}
}

// droppedEntries returns the entries of the allowed list or mapping that the recorded one lacks or changes.
// It compares keys whose entries restrict the run.
func droppedEntries(recorded, allowed any) []string { return addedEntries(allowed, recorded) }

// addedEntries returns the entries of the recorded list or mapping that the allowed one lacks or has with
// another value.
func addedEntries(recorded, allowed any) (excess []string) {
	values, permitted := reflect.ValueOf(recorded), reflect.ValueOf(allowed)
	if values.Kind() == reflect.Map {
		for _, name := range slices.SortedFunc(slices.Values(values.MapKeys()), func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) }) {
			if other := permitted.MapIndex(name); !other.IsValid() || comparableJSON(values.MapIndex(name).Interface()) != comparableJSON(other.Interface()) {
				excess = append(excess, name.String())
			}
		}
		return excess
	}
	known := map[string]bool{}
	for i := range permitted.Len() {
		known[comparableJSON(permitted.Index(i).Interface())] = true
	}
	for i := range values.Len() {
		if value := values.Index(i).Interface(); !known[comparableJSON(value)] {
			excess = append(excess, shownValue(value))
		}
	}
	return excess
}

// excessiveSetupNetwork returns the first network of a recorded setup command that allowed does not
// permit, or nil. allowed permits its policy's network and, for a command in its own setup, that
// command's network.
func excessiveSetupNetwork(recorded, allowed *job.Job) *job.Network {
	for _, step := range recorded.Setup {
		permitted := networkExcess(step.Network, allowed.Policy.Network) == nil
		for _, other := range allowed.Setup {
			permitted = permitted || other.Run == step.Run && networkExcess(step.Network, other.Network) == nil
		}
		if !permitted {
			return &step.Network
		}
	}
	return nil
}

// networkExcess returns the part of network n that allowed does not permit: its mode or its additional
// hosts. It returns nil if allowed permits all of n.
func networkExcess(n, allowed job.Network) []string {
	permitsProxy := allowed.UsesMachineProxy() || allowed.Mode == "full"
	rank := networkRank(n)
	switch {
	case rank < 0 || rank > networkRank(allowed):
		return []string{n.String()}
	case n.UsesMachineProxy() && !permitsProxy:
		return []string{n.String()}
	case n.HasList() && allowed.HasList():
		return addedEntries(n.Allow, allowed.Allow)
	}
	return nil
}

// networkRank orders the modes of a network by how much they permit. It returns -1 for an unknown mode.
func networkRank(n job.Network) int {
	modes := []string{"", "none", "loopback", "list", "full"}
	if n.HasList() {
		return slices.Index(modes, "list")
	}
	return slices.Index(modes, n.Mode)
}

// comparableJSON returns the value's JSON. A value that cannot be encoded equals no other.
func comparableJSON(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("%p", &value) // equal to nothing
	}
	return string(raw)
}

func shownValue(value any) string { return strings.Trim(comparableJSON(value), `"`) }
