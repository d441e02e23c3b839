package body

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/record/transcript/sections"
)

// Mode says how much of the transcript the body of a pull request shows.
type Mode string

// The modes of pull_request.transcript.
const (
	full   Mode = "full"   // each call, folded, with arguments and output
	digest Mode = "digest" // each call on one line
	none   Mode = "none"   // only where the transcript is
)

// DefaultLimit is the maximum length of a body or comment, in UTF-16 code units. GitHub permits
// 65,536; people's edits may use the rest.
const DefaultLimit = 58_000

// MaxComments limits the comments that continue a transcript.
const MaxComments = 20

// Options has what a body shows besides the run's view.
type Options struct {
	Mode  Mode // empty means full
	limit int  // of the body and of each comment, in UTF-16 code units; DefaultLimit if 0
	// Comments limits the comments that continue the transcript.
	Comments int
	// RunDir is the folder or artifact that has the run directory; empty means "RUN_DIR".
	RunDir string
	// Head is raw text at the top of the body, for invisible marks.
	Head string
	// Template is the repository's template for pull requests, unchanged. It may be empty.
	Template string
	sections.Remarks
	// KeepRequest stores this request and the earlier ones in the body, so that a later body can
	// show them.
	KeepRequest bool
	// Closing is raw text below the verdict, such as "Fixes #7". It is the only text that may have
	// an effect on GitHub.
	Closing string
	// Site is where links lead. With the zero value, the only link is to the workflow run.
	Site transcript.Site
}

// Posts has the body of a pull request, and the comments that continue the transcript, in order.
type Posts struct {
	Body     string
	Comments []string
}

// Compose returns the body of a pull request, and comments. The body has the result first, then as
// much of the transcript as fits. The comments continue the transcript; it is only cut between
// calls. Compose fails if the limit is too small for the lines that say where the transcript is.
func Compose(v *transcript.View, o Options) (Posts, error) {
	o.Mode, o.limit, o.RunDir = cmp.Or(o.Mode, full), cmp.Or(o.limit, DefaultLimit), cmp.Or(o.RunDir, "RUN_DIR")
	o.Head += o.firstLines(v)
	calls := v.Calls - countPlanCalls(v)
	longestEnding := ending{comments: o.Comments, hidden: calls}
	first := &page{remainingUnits: o.limit - markdown.Units(o.Head+longestEnding.lastLines(v, o))}
	if first.remainingUnits < 0 {
		return Posts{}, fmt.Errorf("pull request body: a limit of %d characters has no room for where the transcript is", o.limit)
	}
	first.addSections(o.source(v).ForPages(sections.PullRequest))
	first.addTemplate(o.Template)
	space := remainingSpace{units: first.remainingUnits, pageSize: o.limit - commentFrameUnits(v), furtherPages: o.Comments}
	chosen := chooseBlocks(slices.DeleteFunc(shownEntries(v, o.Mode), isPlan), o.Mode, space)
	shown := 0
	for _, b := range chosen {
		shown += b.calls
	}
	pageTexts, _ := space.paginate(chosen) // chooseBlocks made sure that they fit
	end := ending{comments: len(pageTexts) - 1}
	if o.Mode != none {
		end.hidden = calls - shown
	}
	return Posts{Body: o.Head + strings.TrimLeft(first.String()+pageTexts[0], "\n") + end.lastLines(v, o), Comments: comments(v, pageTexts, end)}, nil
}

// firstLines returns the stored requests, the verdict and the closing line.
func (o Options) firstLines(v *transcript.View) string {
	s := ""
	if o.KeepRequest {
		s = requestComment(v, o.Earlier)
	}
	for _, line := range []string{Verdict(v, len(o.DraftReasons) > 0), o.Closing} {
		if line != "" {
			s += strings.TrimSuffix(line, "\n") + "\n\n"
		}
	}
	return s
}

// source returns the source of sections. Links lead only to the site of the options.
func (o Options) source(v *transcript.View) *sections.Source {
	return &sections.Source{View: v, Links: sections.LinksOf(v, o.Site), Remarks: o.Remarks}
}

// ending is the text after the last call that is shown.
type ending struct {
	comments int // comments after the body
	hidden   int // calls that only the run directory has
}

// lastLines returns the last lines of a body: how many comments follow, how many calls are left out, and
// where the whole transcript is.
func (e ending) lastLines(v *transcript.View, o Options) string {
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
	if v.EventCount > 0 {
		digest = fmt.Sprintf(" (SHA-256 of line %d: %s)", v.EventCount, codeField(clip.SHA(v.Head)))
	}
	if page := o.Site.Page(v.Started.Artifacts); page != "" {
		return s + fmt.Sprintf("The report and the whole transcript%s are among the %s.\n", digest, markdown.Link("artifacts of the workflow's run", page))
	}
	return s + "The whole transcript is " + markdown.Code(markdown.Cut(o.RunDir, fieldWidth)+"/transcript.jsonl") + digest + ".\n"
}

// Title returns the default title of a pull request: the task's title, or else the first line of
// the summary or task. It is one line without effects, of up to 256 UTF-16 units, and never empty.
func Title(v *transcript.View) string {
	return cmp.Or(
		markdown.Title(v.Task.Title), markdown.Title(markdown.Headline(v.Summary())), markdown.Title(markdown.Headline(v.Task.Text)),
		markdown.Title("agent-ci "+v.Started.Key),
	)
}
