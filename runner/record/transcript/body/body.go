package body

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/record/transcript/sections"
)

// Mode says how much of the transcript a pull request's body shows.
type Mode string

// The modes of pull_request.transcript.
const (
	Full   Mode = "full"   // each call folded, with arguments and output
	Digest Mode = "digest" // each call as one line
	None   Mode = "none"   // where it is, and nothing of it
)

// DefaultLimit is how long a body or comment may be, in UTF-16 code units.
// GitHub takes 65,536; the rest is room for people's edits.
const DefaultLimit = 58_000

// MaxComments is the most comments that a transcript goes on in.
const MaxComments = 20

// Options are what a body needs to be told beside the run's view.
type Options struct {
	Mode  Mode // Full if empty
	Limit int  // of the body and of each comment, in UTF-16 code units; DefaultLimit if 0
	// Comments is the most comments that the transcript may go on in.
	Comments int
	// RunDir is where readers find the run directory: the name of the folder or
	// of the artifact, "RUN_DIR" if empty.
	RunDir string
	// Head stands first in the body, as it is: marks that no page shows.
	Head string
	// Template is the repository's own template of a pull request, as it was
	// written; it may be empty.
	Template string
	// Draft says why the pull request is a draft, a sentence for each reason. A
	// red verification and unconfined commands are told without it.
	Draft []string
	// Notes are sentences that a reader must know and that are no reason for a
	// draft.
	Notes []string
	// Facts are sentences without their full stop that stand beside those of the run.
	Facts []string
	// Earlier are the requests that the change came of before this one, the newest
	// first.
	Earlier []sections.Request
	// Remember has the body keep its request and the earlier ones for a later body.
	Remember bool
	// Closing stands below the verdict, as it is: "Fixes #7", where the task came
	// from. It is the only text here that may have an effect.
	Closing string
	// Site is where the links of the body go; the zero value makes none but to the
	// workflow's run.
	Site transcript.Site
}

// Posts are a pull request's body and the comments that the transcript goes on
// in, in their order.
type Posts struct {
	Body     string
	Comments []string
}

// Excerpts are what a body shows of texts: the View for Compose has these.
var Excerpts = transcript.Cut{Lines: 40, MessageLines: 8, Width: 300}

// Compose is the pull request's body: what was done and how well, then as much of
// the transcript as there is room for there and in comments, cut between two calls.
// The error is that the limit leaves no room even for where the transcript is.
func Compose(v *transcript.View, o Options) (Posts, error) {
	o.Mode, o.Limit, o.RunDir = cmp.Or(o.Mode, Full), cmp.Or(o.Limit, DefaultLimit), cmp.Or(o.RunDir, "RUN_DIR")
	if o.Remember {
		o.Head += remembered(v, o.Earlier)
	}
	for _, line := range []string{Verdict(v, len(o.Draft) > 0), o.Closing} {
		if line != "" {
			o.Head += strings.TrimSuffix(line, "\n") + "\n\n"
		}
	}
	calls := v.Calls - planCalls(v)
	most := ending{comments: o.Comments, hidden: calls}
	first := &page{left: o.Limit - markdown.Units(o.Head+most.body(v, o))}
	if first.left < 0 {
		return Posts{}, fmt.Errorf("pull request body: a limit of %d characters has no room for where the transcript is", o.Limit)
	}
	first.draw(o.source(v).On(sections.PullRequest))
	first.form(o.Template)
	pages := room{left: first.left, page: o.Limit - commentFrame(v), following: o.Comments}
	chosen := choose(withoutPlans(shownEntries(v, o.Mode)), o.Mode, pages)
	shown := 0
	for _, one := range chosen {
		shown += one.calls
	}
	laid, _ := pages.lay(chosen) // all of them have room
	end := ending{comments: len(laid) - 1}
	if o.Mode != None {
		end.hidden = calls - shown
	}
	return Posts{Body: o.Head + strings.TrimLeft(first.String()+laid[0], "\n") + end.body(v, o), Comments: comments(v, laid, end)}, nil
}

// source is the run with what the body is told beside it. Its links go to the site of the body alone.
func (o Options) source(v *transcript.View) *sections.Source {
	links := sections.LinksOf(v, transcript.Site{})
	links.Site = o.Site
	return &sections.Source{View: v, Links: links, Draft: o.Draft, Notes: o.Notes, Facts: o.Facts, Earlier: o.Earlier}
}

// ending is what has to be said after the last call that is shown.
type ending struct {
	comments int // that follow the body
	hidden   int // calls shown nowhere but in the run directory
}

func (e ending) body(v *transcript.View, o Options) string {
	s := "\n"
	switch {
	case e.comments == 1:
		s += "The transcript continues in a comment below. "
	case e.comments > 1:
		s += fmt.Sprintf("The transcript continues in %d comments below. ", e.comments)
	case e.hidden > 0:
		s += sections.NotShown(e.hidden) + " "
	}
	digest := ""
	if v.Events > 0 {
		digest = fmt.Sprintf(" (SHA-256 of line %d: %s)", v.Events, code(transcript.ShortSHA(v.Head)))
	}
	if page := o.Site.Page(v.Started.Artifacts); page != "" {
		return s + fmt.Sprintf("The report and the whole transcript%s are among the %s.\n", digest, markdown.Link{Name: "artifacts of the workflow's run", Address: page})
	}
	return s + "The whole transcript is " + markdown.Code(markdown.Cut(o.RunDir, fieldWidth)+"/transcript.jsonl") + digest + ".\n"
}

// Title is the pull request's title where the job names none: the task's, else
// the first line of the summary, else that of the task. It is one line without
// effects, at most 256 UTF-16 code units, and never empty.
func Title(v *transcript.View) string {
	return cmp.Or(
		markdown.Title(v.Task.Title), markdown.Title(markdown.Headline(v.Summary())), markdown.Title(markdown.Headline(v.Task.Text)),
		markdown.Title("agent-ci "+v.Started.Key),
	)
}
