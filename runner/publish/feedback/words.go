package feedback

import (
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

// Longest texts, in UTF-16 code units. GitHub accepts 65,536.
const (
	maxReview  = 60_000
	maxFinding = 12_000
	maxTitle   = 200 // as in the schema
)

// omittedNote is appended to a text that was cut to the limit.
const omittedNote = "\n*There is no room for the rest; the run's output.json has all.*\n"

// harmlessMarkdown returns the agent's text as Markdown without effects: mentions, references, links and HTML
// become plain text. It drops blocks beyond limit, in UTF-16 code units, and says so.
func harmlessMarkdown(text string, limit int) string {
	var b strings.Builder
	remaining := limit - markdown.Units(omittedNote)
	for _, block := range markdown.Whole(text) {
		if remaining -= markdown.Units(block); remaining < 0 {
			b.WriteString(omittedNote)
			break
		}
		b.WriteString(block)
	}
	return b.String()
}

// findingText returns a finding as a comment on its lines.
func findingText(f finding) string {
	return intake.FindingMark + findingHeadline(f) + "\n\n" + harmlessMarkdown(f.Body, maxReview)
}

// findingHeadline returns the title and severity of a finding.
func findingHeadline(f finding) string {
	return fmt.Sprintf("**%s** (%s)", markdown.Text(markdown.Cut(f.Title, maxTitle)), markdown.Text(f.Severity))
}

// reviewText returns the body of a review: the summary, findings without a comment on the diff, and the
// commit. refused are findings whose comments the forge refused. offDiff are findings on no line of the diff.
func (s Poster) reviewText(o reviewObject, refused []diffFinding, offDiff []finding) string {
	var b strings.Builder
	b.WriteString(s.mark(s.Subject.HeadSHA) + "\n" + harmlessMarkdown(o.Summary, maxFinding))
	tail := "\n" + s.footer("Commit "+markdown.Code(clip.SHA(s.Subject.HeadSHA))+" was reviewed")
	remaining := maxReview - markdown.Units(b.String()) - markdown.Units(tail)
	all := offDiff
	for _, p := range refused {
		all = append(all, p.finding)
	}
	for i, f := range all {
		part := fmt.Sprintf("\n%s, line %d: %s\n\n%s", markdown.Code(f.Path), f.Line, findingHeadline(f), harmlessMarkdown(f.Body, maxFinding))
		isFirstRefused := i == len(offDiff)
		if isFirstRefused {
			part = "\n**On lines of the diff, where the forge took no comment**\n" + part
		} else if i == 0 {
			part = "\n**On no line of the diff**\n" + part
		}
		const countUnits = 100 // for the line that counts the omitted findings
		if remaining -= markdown.Units(part); remaining < countUnits {
			b.WriteString("\n" + transcript.CountNoun(len(all)-i, "more finding") + " that there is no room for; the run's output.json has all.\n")
			break
		}
		b.WriteString(part)
	}
	return b.String() + tail
}

// commentText returns the text of the comment that later runs update.
func (s Poster) commentText(o commentObject) string {
	return s.mark(s.Snapshot) + "\n" + harmlessMarkdown(o.Comment, maxReview) + "\n" + s.footer("Written")
}

// ourLink matches addresses that need no escaping in Markdown.
var ourLink = lazyregexp.New(`^https?://[\w.:/-]+$`)

// footer names agent-ci as the author, and warns that a model wrote the text.
func (s Poster) footer(what string) string {
	by := "agent-ci"
	if ourLink().MatchString(s.Link) {
		by = "[agent-ci](" + s.Link + ")"
	}
	return fmt.Sprintf("*%s by %s. Text of a model: check it before you rely on it.*\n", what, by)
}

// mark returns the hidden mark by which later runs recognise this post. input identifies what it is about.
func (s Poster) mark(input string) string { return intake.FeedbackMark(s.Key, input, s.RunID) }

// sameContent reports whether two texts are equal apart from their marks (the first lines) and links to runs.
func sameContent(a, b string) bool {
	plain := func(text string) string {
		_, rest, _ := strings.Cut(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
		return strings.TrimSpace(runLink().ReplaceAllString(rest, ""))
	}
	return plain(a) == plain(b)
}

var runLink = lazyregexp.New(`\[agent-ci\]\([^)]*\)`)
