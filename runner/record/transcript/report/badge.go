package report

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
	"github.com/agent-ci/agent-ci/runner/record/transcript/sections"
)

// ending draws how a run ended: words for people, the message, and the outcome with its reason.
func ending(v *transcript.View, links sections.Links) g.Node {
	words, tone, message := "Not finished", document.Neutral, document.Sentence("The run has not ended, or it was killed.")
	if f := v.Finished; f != nil {
		tone, words = sections.DescribeEnding(f.Outcome, f.Reason)
		message = document.Join(" ", links.Sentence(f.Message), document.Mono(f.Outcome+"/"+f.Reason))
	}
	if tone == document.Neutral {
		tone = document.Doubtful
	}
	return h.P(h.Class("ending"), labelled("badge "+tones[tone], words), g.Text(" "), Line(message))
}
