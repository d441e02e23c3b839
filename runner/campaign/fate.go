package campaign

import (
	"slices"

	"github.com/agent-ci/agent-ci/runner/outcome"
)

// ofAll are the reasons with which every target of a wave would end: what all of them are given is
// wrong. A reason that the repository of a target may have alone is not here.
var ofAll = map[outcome.Outcome][]string{
	outcome.InvalidInput: {
		"api_url", "bad_tool", "base_url", "fallback_tools", "mcp_token", "mcp_url", "no_api_key", "no_identity", "no_price", "no_script_engine", "no_token", "operator_file", "proxy",
		"scripted_session", "secret", "signing_key", "too_many_tools", "unknown_tool",
	},
	outcome.ModelFailed: {"forbidden", "identity", "not_found", "quota", "tier_unknown", "unauthorized"},
	outcome.ForgeFailed: {"bad_token"},
}

// ExitCode is the status with which whoever made the run elsewhere ends: that of the outcome
// (docs/outcomes.md), but 2 for all that would end every target of the wave so, and for nothing else.
func (r Report) ExitCode() int {
	o := outcome.Outcome(r.Outcome)
	switch {
	case slices.Contains(ofAll[o], r.Reason):
		return outcome.InvalidInput.ExitCode()
	case o == outcome.InvalidInput:
		return outcome.InternalError.ExitCode()
	}
	return (&outcome.Stop{Outcome: o, Reason: r.Reason}).ExitCode()
}

// MayGoOn says whether another start of the run, in the same place, may go on with it: it was told to
// end, or the model or the forge was out of reach.
func (r Report) MayGoOn() bool {
	return slices.Contains([]outcome.Outcome{outcome.Cancelled, outcome.ModelFailed, outcome.ForgeFailed}, outcome.Outcome(r.Outcome))
}
