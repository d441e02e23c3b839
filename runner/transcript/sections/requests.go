package sections

import (
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/document"
)

// Request is what a later pull request's body tells of an earlier request for work on it, and of its result.
type Request struct {
	Run     string                `json:"run"` // id
	Link    string                `json:"link,omitempty"`
	Asked   string                `json:"asked"` // in whose words it was asked for, or the title
	Actor   string                `json:"actor,omitempty"`
	Summary string                `json:"summary,omitempty"`
	Plan    []transcript.PlanStep `json:"plan,omitempty"`
	Calls   []RequestCall         `json:"calls,omitempty"`
	More    int                   `json:"more,omitempty"` // calls that are not listed
	// Before is how many requests before the oldest of all are not told; it is that one's.
	Before int `json:"before,omitempty"`
}

// RequestCall is a call in a line.
type RequestCall struct {
	Tool  string `json:"tool"`
	Topic string `json:"topic,omitempty"`
	End   string `json:"end"`
}

// earlierRequests are those before the last one, folded, the newest first.
func earlierRequests(s *Source) document.Section {
	if len(s.Earlier) == 0 {
		return document.Section{}
	}
	folds := document.Folds{Limit: document.Limit{Noun: "request", Most: 20, Share: 14_000}}
	for _, r := range s.Earlier {
		folds.Folds = append(folds.Folds, s.Links.earlier(r))
	}
	var untold document.Block
	if count := s.Earlier[len(s.Earlier)-1].Before; count > 0 {
		are := " are"
		if count == 1 {
			are = " is"
		}
		untold = paragraph(transcript.Count(count, "earlier request") + are + " not shown.")
	}
	return section("earlier-requests", "Earlier requests", folds, untold)
}

func (l Links) earlier(r Request) document.Fold {
	by := ""
	if r.Actor != "" {
		by = ", by " + r.Actor
	}
	fold := document.Fold{Title: document.Words("Asked for" + by + ": " + r.Asked), Share: 5_000}
	fold.Blocks = append(fold.Blocks, document.Paragraph{Text: document.Join("", document.Words("Run "), l.run(r.Run, r.Link))}, document.Message{Text: r.Summary, Share: 1_500})
	steps := Steps(transcript.Plan{Steps: r.Plan})
	steps.Share = 1_500
	calls := document.List{Limit: document.Limit{Noun: "call", Most: len(r.Calls)}}
	for _, c := range r.Calls {
		calls.Items = append(calls.Items, document.Item{Text: document.Join(" ", document.Text{{Text: c.Tool, Style: document.Strong}}, document.Mono(c.Topic), document.Words("· "+c.End))})
	}
	fold.Blocks = append(fold.Blocks, steps, calls)
	if r.More > 0 {
		fold.Blocks = append(fold.Blocks, paragraph(NotShown(r.More)))
	}
	return fold
}

// NotShown says how many calls are left out.
func NotShown(calls int) string {
	if calls == 1 {
		return "1 more call is not shown here."
	}
	return transcript.Thousands(int64(calls)) + " more calls are not shown here."
}
