package sections

import (
	"cmp"

	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
)

// reasonWords replaces the outcome's words for some reasons.
var reasonWords = map[string]string{
	"model_failed/script_mismatch": "The scripted session did not fit",
	"model_failed/identity":        "No access to the model",
	"model_failed/unauthorized":    "No access to the model",
	"model_failed/forbidden":       "No access to the model",
	"model_failed/unreachable":     "The model could not be reached",
}

// changedWords says where a change is, by the outcome's reason.
var changedWords = map[string]string{
	"pull_request": "Pull request ready", "pushed": "Branch pushed", "committed": "Change committed", "left_in_checkout": "Change is in the checkout",
}

// DescribeEnding returns how a run ended, in words. The tone of a successful run without a change is
// neutral.
func DescribeEnding(ended, reason string) (tone document.Tone, words string) {
	o := outcome.Outcome(ended)
	words = cmp.Or(reasonWords[ended+"/"+reason], o.Text())
	switch {
	case o == outcome.Changed:
		return document.Good, cmp.Or(changedWords[reason], words)
	case o != outcome.NeedsInput && o.ExitCode() != 0:
		return document.Bad, words
	}
	return document.Neutral, words
}
