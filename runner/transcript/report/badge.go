package report

import (
	"cmp"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/document"
	"github.com/agent-ci/agent-ci/runner/transcript/sections"
)

// outcomeWords are the outcomes as people say them.
var outcomeWords = map[outcome.Outcome]string{
	outcome.Changed: "Changed", outcome.NoChanges: "No change", outcome.Skipped: "Skipped", outcome.InternalError: "agent-ci failed",
	outcome.InvalidInput: "Could not start", outcome.NeedsInput: "Waiting for an answer", outcome.BudgetExceeded: "Budget used up",
	outcome.VerifyFailed: "Checks failed", outcome.PolicyViolation: "Change refused", outcome.ModelFailed: "The model failed",
	outcome.ForgeFailed: "GitHub failed", outcome.SandboxUnavailable: "No sandbox here", outcome.Conflict: "Conflict", outcome.Cancelled: "Cancelled",
}

// reasonWords are the reasons that the words of their outcome do not fit.
var reasonWords = map[string]string{
	"model_failed/script_mismatch": "The scripted session did not fit",
	"model_failed/identity":        "No access to the model",
	"model_failed/unauthorized":    "No access to the model",
	"model_failed/forbidden":       "No access to the model",
	"model_failed/unreachable":     "The model could not be reached",
}

// changedWords are what became of a change, by the reason of the outcome.
var changedWords = map[string]string{
	"pull_request": "Pull request ready", "pushed": "Branch pushed", "committed": "Change committed", "left_in_checkout": "Change is in the checkout",
}

// ending is how a run ended: in words for people, as its message, and for programs.
func ending(v *transcript.View, links sections.Links) g.Node {
	words, tone, message := "Not finished", document.Doubtful, document.Sentence("The run has not ended, or it was killed.")
	if f := v.Finished; f != nil {
		end := f.Outcome + "/" + f.Reason
		words, tone = cmp.Or(reasonWords[end], outcomeWords[outcome.Outcome(f.Outcome)], strings.ReplaceAll(f.Outcome, "_", " ")), document.Good
		if outcome.Outcome(f.Outcome) == outcome.Changed {
			words = cmp.Or(changedWords[f.Reason], words)
		}
		switch outcome.Outcome(f.Outcome) {
		case outcome.NoChanges, outcome.Skipped, outcome.NeedsInput:
			tone = document.Doubtful
		default:
			if outcome.Outcome(f.Outcome).ExitCode() != 0 {
				tone = document.Bad
			}
		}
		message = document.Join(" ", links.Sentence(f.Message), document.Mono(end))
	}
	return h.P(h.Class("ending"), labelled("badge "+tones[tone], words), g.Text(" "), Line(message))
}
