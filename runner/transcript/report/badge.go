package report

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// outcomeWords are the outcomes as people say them.
var outcomeWords = map[outcome.Outcome]string{
	outcome.Changed: "Changed", outcome.NoChanges: "No change", outcome.Skipped: "Skipped", outcome.InternalError: "agent-ci failed",
	outcome.InvalidInput: "Could not begin", outcome.NeedsInput: "Waits for an answer", outcome.BudgetExceeded: "Budget used up",
	outcome.VerifyFailed: "Checks failed", outcome.PolicyViolation: "Change refused", outcome.ModelFailed: "The model failed",
	outcome.ForgeFailed: "GitHub failed", outcome.SandboxUnavailable: "No confinement here", outcome.Conflict: "Conflict", outcome.Cancelled: "Cancelled",
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
	"pull_request": "Pull request is there", "pushed": "Branch is pushed", "committed": "Change is committed", "left_in_checkout": "Change is in the checkout",
}

// ending is how a run ended.
type ending struct {
	Words   string
	Outcome string // outcome/reason; empty for a run that has not ended
	Tone    string // good, bad, open
	Message []fact // its text, of which the addresses of pull requests are links
}

func (e ending) node() g.Node {
	line := g.Group{h.Span(h.Class("badge "+e.Tone), g.Text(e.Words)), g.Text(" "), g.Map(e.Message, fact.value)}
	if e.Outcome != "" {
		line = append(line, g.Text(" "), code(e.Outcome))
	}
	return h.P(h.Class("ending"), line)
}

func (o *overview) ending() ending {
	f := o.View.Finished
	if f == nil {
		return ending{Words: "Not finished", Tone: "open", Message: []fact{{Value: "The run has not ended, or it was killed."}}}
	}
	end := ending{Outcome: field(f.Outcome + "/" + f.Reason), Tone: "good", Message: o.linked(shownText(f.Message, 2000))}
	end.Words = cmp.Or(outcomeWords[outcome.Outcome(f.Outcome)], field(strings.ReplaceAll(f.Outcome, "_", " ")))
	end.Words = cmp.Or(reasonWords[f.Outcome+"/"+f.Reason], end.Words)
	if outcome.Outcome(f.Outcome) == outcome.Changed {
		end.Words = cmp.Or(changedWords[f.Reason], end.Words)
	}
	switch f.Outcome {
	case string(outcome.NoChanges), string(outcome.Skipped), string(outcome.NeedsInput):
		end.Tone = "open"
	default:
		if outcome.Outcome(f.Outcome).ExitCode() != 0 {
			end.Tone = "bad"
		}
	}
	return end
}

var addresses = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`https://[\w./:-]*\w`) })

// linked is a text in which the addresses of what the run published are links.
func (o *overview) linked(text string) (parts []fact) {
	from := 0
	for _, at := range addresses().FindAllStringIndex(text, -1) {
		address := text[at[0]:at[1]]
		if link(address) == "" || !slices.ContainsFunc(o.View.Publish, func(p transcript.Publish) bool { return p.URL == address }) {
			continue
		}
		parts = append(parts, fact{Value: text[from:at[0]]}, fact{Value: address, Link: address})
		from = at[1]
	}
	return append(parts, fact{Value: text[from:]})
}

// begun says whether the agent came to work: of a run that ended before that, what it did
// not do is nothing to tell.
func (o *overview) begun() bool {
	v := o.View
	return v.Finished == nil || v.Turns > 0 || v.Calls > 0 || v.Change != nil && len(v.Change.Files) > 0
}
