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

// FirstExcess returns the first key of recorded that is more permissive than in allowed, or nil. resumes
// means that the run resumes: it publishes and uses an API key, so more keys are checked than for a
// replay.
func FirstExcess(recorded, allowed *job.Job, resumes bool) *Excess {
	for _, value := range setupNetworkExcess(recorded, allowed) { // before setup itself, which is held to be the same
		return &Excess{"setup[].network", value}
	}
	for _, bound := range bounds {
		if bound.onResume && !resumes {
			continue
		}
		valueOf := func(j *job.Job) any { return job.Format().Root.Value(reflect.ValueOf(*j), bound.key).Interface() }
		for _, value := range bound.excess(valueOf(recorded), valueOf(allowed)) {
			return &Excess{bound.key, value}
		}
	}
	return nil
}

// bound compares one key of a recorded job with the allowed job. over returns the values in excess.
type bound struct {
	key      string
	onResume bool // only for a resumed run
	excess   func(made, allowed any) []string
}

var bounds = []bound{
	{"policy.sandbox", false, atMostWord("read-only", "workspace-write", "danger-full-access")},
	{"policy.require", false, func(made, allowed any) []string {
		if allowed == "" || made == allowed || made == "full" {
			return nil
		}
		return []string{made.(string)}
	}},
	{"policy.network", false, func(made, allowed any) []string { return networkExcess(made.(job.Network), allowed.(job.Network)) }},
	{"policy.writable", false, missingFromAllowed},
	{"policy.deny_read", false, allowedMissingFrom},
	{"policy.rules", false, allowedMissingFrom},
	{"policy.env.pass", false, missingFromAllowed},
	{"policy.secrets", false, missingFromAllowed},
	{"git.filters", false, missingFromAllowed},
	{"hooks", false, func(made, allowed any) []string {
		return append(missingFromAllowed(made, allowed), allowedMissingFrom(made, allowed)...)
	}},
	{"services", false, missingFromAllowed},
	{"mcp_servers", false, missingFromAllowed},
	{"tools.dynamic", false, missingFromAllowed},

	{"tools.hosted", true, requireEqual},
	{"model.base_url", true, requireEqual},
	{"model.api_key_env", true, requireEqual},
	{"model.auth", true, requireEqual},
	{"model.identity", true, requireEqual},
	{"model.headers", true, requireEqual},
	{"policy.env.set", true, requireEqual},
	{"policy.change", true, requireEqual},
	{"policy.protect", true, allowedMissingFrom},
	{"policy.silenced", true, atMostWord("refuse", "draft", "show")},
	{"policy.workflow_risk", true, atMostWord("refuse", "draft", "show")},
	{"setup", true, requireEqual},
	{"verify", true, requireEqual},
	{"on_verify_failed", true, requireEqual},
	{"trust", true, requireEqual},
	{"publish", true, requireEqual},
	{"repository.name", true, requireEqual},
	{"pull_request.branch", true, requireEqual},
	{"pull_request.commit", true, requireEqual},
}

// atMostWord allows the words up to the allowed one, in the order given.
func atMostWord(words ...string) func(made, allowed any) []string {
	return func(made, allowed any) []string {
		if index := slices.Index(words, made.(string)); index >= 0 && index <= slices.Index(words, allowed.(string)) {
			return nil
		}
		return []string{made.(string)}
	}
}

// requireEqual requires equal JSON.
func requireEqual(made, allowed any) []string {
	if recordedJSON(made) == recordedJSON(allowed) {
		return nil
	}
	return []string{shownValue(made)}
}

// allowedMissingFrom requires every entry of the allowed value.
func allowedMissingFrom(made, allowed any) []string { return missingFromAllowed(allowed, made) }

// missingFromAllowed returns the entries of a list or mapping missing from the allowed one.
func missingFromAllowed(made, allowed any) (excess []string) {
	recorded, permitted := reflect.ValueOf(made), reflect.ValueOf(allowed)
	if recorded.Kind() == reflect.Map {
		for _, name := range slices.SortedFunc(slices.Values(recorded.MapKeys()), func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) }) {
			if other := permitted.MapIndex(name); !other.IsValid() || recordedJSON(recorded.MapIndex(name).Interface()) != recordedJSON(other.Interface()) {
				excess = append(excess, name.String())
			}
		}
		return excess
	}
	known := map[string]bool{}
	for i := range permitted.Len() {
		known[recordedJSON(permitted.Index(i).Interface())] = true
	}
	for i := range recorded.Len() {
		if value := recorded.Index(i).Interface(); !known[recordedJSON(value)] {
			excess = append(excess, shownValue(value))
		}
	}
	return excess
}

// setupNetworkExcess returns the first network of a setup command in excess. It must be within the policy's
// network or, for the same command, the network in the allowed job.
func setupNetworkExcess(made, allowed *job.Job) []string {
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
		if n.HasList() {
			return slices.Index(modes, "list")
		}
		return slices.Index(modes, n.Mode)
	}
	rankOfNetwork, maxRank := rank(n), rank(allowed)
	switch {
	case rankOfNetwork < 0 || rankOfNetwork > maxRank, n.UsesMachineProxy() && !allowed.UsesMachineProxy() && allowed.Mode != "full":
		return []string{n.String()}
	case n.HasList() && allowed.HasList():
		return missingFromAllowed(n.Allow, allowed.Allow)
	}
	return nil
}

// recordedJSON returns the value's JSON, as in a record.
func recordedJSON(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("%p", &value) // equal to nothing
	}
	return string(raw)
}

func shownValue(value any) string { return strings.Trim(recordedJSON(value), `"`) }
