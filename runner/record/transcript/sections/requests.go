package sections

import (
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
)

// Request is a request for work on a pull request, with its result.
type Request struct {
	Run             string `json:"run"` // id of the run
	Link            string `json:"link,omitempty"`
	Asked           string `json:"asked"` // the person's words, or the title
	Actor           string `json:"actor,omitempty"`
	Summary         string `json:"summary,omitempty"`
	OmittedRequests int    `json:"before,omitempty"` // in the oldest request: how many earlier ones are left out
}

// earlierRequestsSection returns the earlier requests, newest first and folded.
func earlierRequestsSection(s *Source) document.Section {
	folds := document.Folds{Limit: document.Limit{Noun: "request", MaxRows: 20, MaxUnits: 14_000}}
	count := 0 // of the oldest request
	for _, r := range s.Earlier {
		folds.Folds = append(folds.Folds, s.Links.earlierRequestFold(r))
		count = r.OmittedRequests
	}
	var omitted document.Block
	if count > 0 {
		are := " are"
		if count == 1 {
			are = " is"
		}
		omitted = paragraph(transcript.CountNoun(count, "earlier request") + are + " not shown.")
	}
	return section("earlier-requests", "Earlier requests", folds, omitted)
}

// earlierRequestFold returns an earlier request as a fold with its run and summary.
func (l Links) earlierRequestFold(r Request) document.Fold {
	byActor := ""
	if r.Actor != "" {
		byActor = ", by " + r.Actor
	}
	return document.Fold{Title: document.Words("Asked for" + byActor + ": " + r.Asked), MaxUnits: 5_000, Blocks: []document.Block{
		document.Paragraph{Text: document.Format("Run %s", l.runLink(r.Run, r.Link))}, document.Message{Text: r.Summary, MaxUnits: 1_500},
	}}
}

// DescribeOmitted returns a sentence with the number of calls that are left out.
func DescribeOmitted(calls int) string {
	if calls == 1 {
		return "1 more call is not shown here."
	}
	return transcript.GroupThousands(calls) + " more calls are not shown here."
}
