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
	full   Mode = "full"   // each call folded, with arguments and output
	digest Mode = "digest" // each call as one line
	none   Mode = "none"   // only where the transcript is
)

// DefaultLimit is how long a body or comment may be, in UTF-16 code units.
// GitHub takes 65,536; the rest is room for people's edits.
const DefaultLimit = 58_000

// MaxComments bounds the comments that continue a transcript.
const MaxComments = 20

// Options adds information to the run's view.
type Options struct {
	Mode  Mode // full if empty
	limit int  // of the body and of each comment, in UTF-16 code units; DefaultLimit if 0
	// Comments bounds the comments of the transcript.
	Comments int
	// RunDir is the folder or artifact with the run directory, "RUN_DIR" if empty.
	RunDir string
	// Head is raw text at the top of the body: invisible marks.
	Head string
	// Template is the repository's own template of a pull request, as it was
	// written; it may be empty.
	Template string
	// Draft says why the pull request is a draft, a sentence for each reason. The
	// body mentions failed checks and unconfined commands by itself.
	Draft []string
	// Notes lists important sentences that do not make the pull request a draft.
	Notes []string
	// Facts lists sentences without a full stop for the run's facts.
	Facts []string
	// Earlier lists the earlier requests for the change, newest first.
	Earlier []sections.Request
	// KeepRequest stores the run's request and the earlier ones in the body, for a later body.
	KeepRequest bool
	// Closing is raw text below the verdict: "Fixes #7" for the task's origin. It is the only text
	// with an effect.
	Closing string
	// Site is the target of links. The zero value only links to the workflow run.
	Site transcript.Site
}

// Posts holds a pull request's body and the comments that continue the transcript, in order.
type Posts struct {
	Body     string
	Comments []string
}

// Excerpts is the cut of texts in a body. Compose needs a View made with it.
var Excerpts = transcript.ExcerptLimits{Lines: 40, MessageLines: 8, Width: 300}

// Compose returns the pull request's body: the result, then as much of the transcript as fits there
// and in comments, cut between calls. It fails if the limit has no room for the transcript's place.
func Compose(v *transcript.View, o Options) (Posts, error) {
	o.Mode, o.limit, o.RunDir = cmp.Or(o.Mode, full), cmp.Or(o.limit, DefaultLimit), cmp.Or(o.RunDir, "RUN_DIR")
	if o.KeepRequest {
		o.Head += requestComment(v, o.Earlier)
	}
	for _, line := range []string{Verdict(v, len(o.Draft) > 0), o.Closing} {
		if line != "" {
			o.Head += strings.TrimSuffix(line, "\n") + "\n\n"
		}
	}
	calls := v.Calls - planCalls(v)
	most := ending{comments: o.Comments, hidden: calls}
	first := &page{remainingUnits: o.limit - markdown.Units(o.Head+most.body(v, o))}
	if first.remainingUnits < 0 {
		return Posts{}, fmt.Errorf("pull request body: a limit of %d characters has no room for where the transcript is", o.limit)
	}
	first.draw(o.source(v).On(sections.PullRequest))
	first.addTemplate(o.Template)
	pages := remainingSpace{units: first.remainingUnits, page: o.limit - commentFrame(v), following: o.Comments}
	chosen := chooseBlocks(withoutPlans(shownEntries(v, o.Mode)), o.Mode, pages)
	shown := 0
	for _, one := range chosen {
		shown += one.calls
	}
	laid, _ := pages.paginate(chosen) // all of them have room
	end := ending{comments: len(laid) - 1}
	if o.Mode != none {
		end.hidden = calls - shown
	}
	return Posts{Body: o.Head + strings.TrimLeft(first.String()+laid[0], "\n") + end.body(v, o), Comments: comments(v, laid, end)}, nil
}

// source returns the run with the options. Links go to the body's site only.
func (o Options) source(v *transcript.View) *sections.Source {
	links := sections.LinksOf(v, transcript.Site{})
	links.Site = o.Site
	return &sections.Source{View: v, Links: links, Draft: o.Draft, Notes: o.Notes, Facts: o.Facts, Earlier: o.Earlier}
}

// ending is the text after the last shown call.
type ending struct {
	comments int // that follow the body
	hidden   int // calls shown nowhere but in the run directory
}

// body returns the last lines of a body: the number of comments, the number of omitted events, and the place of
// the whole transcript.
func (e ending) body(v *transcript.View, o Options) string {
	s := "\n"
	switch {
	case e.comments == 1:
		s += "The transcript continues in a comment below. "
	case e.comments > 1:
		s += fmt.Sprintf("The transcript continues in %d comments below. ", e.comments)
	case e.hidden > 0:
		s += sections.DescribeOmitted(e.hidden) + " "
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

// Title returns the pull request's default title: the task's, else the first line of the summary,
// else of the task. It is one line without effects, up to 256 UTF-16 units, never empty.
func Title(v *transcript.View) string {
	return cmp.Or(
		markdown.Title(v.Task.Title), markdown.Title(markdown.Headline(v.Summary())), markdown.Title(markdown.Headline(v.Task.Text)),
		markdown.Title("agent-ci "+v.Started.Key),
	)
}
