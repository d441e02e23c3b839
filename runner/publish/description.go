package publish

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/body"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/record/transcript/sections"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// draftMark begins the body of a draft that a run made. A later run may make such a draft ready, but not a
// person's.
const draftMark = "<!-- agent-ci: draft -->\n"

// pullText is a pull request's title, body and comments.
type pullText struct {
	title string
	body.Posts
}

// describe returns the pull request's text. It writes the body to the run directory, except for lessons alone.
func (m Publisher) describe(p *Proposal, options body.Options, out *Publication) (pullText, error) {
	view, err := m.Record.View()
	if err != nil {
		return pullText{}, err
	}
	if p.lessons != nil {
		return pullText{p.title(view), body.Posts{Body: body.Lessons(view, *p.lessons, options)}}, nil
	}
	if p.Bundle != nil && p.Lessons != nil { // the bundle's own account of its lessons is not trusted
		if view.Lessons, err = p.Lessons.ForReviewers(p.Change); err != nil {
			return pullText{}, err
		}
	}
	if p.Inspection != nil { // a closed transcript lacks the latest inspection
		view.Inspection = *p.Inspection
	}
	posts, err := body.Compose(view, options)
	if err != nil {
		return pullText{}, err
	}
	if err := m.Record.Write(record.PullRequestFile, []byte(posts.Body)); err != nil {
		return pullText{}, err
	}
	out.BodyFile = record.PullRequestFile
	return pullText{p.title(view), posts}, nil
}

// title returns the title of the pull request and commit.
func (p *Proposal) title(view *transcript.View) string {
	if p.lessons != nil {
		return "Take in " + transcript.CountNoun(len(p.lessons.Lessons), "lesson") + " of a run"
	}
	return cmp.Or(p.Job.PullRequest.Title, body.Title(view))
}

// BodyOptions returns the options of a pull request's body, before the commit exists.
func (m Publisher) BodyOptions(p *Proposal) body.Options {
	options := body.Options{
		Mode: body.Mode(p.Job.PullRequest.Transcript), RunDir: filepath.Base(m.Record.Path()),
		Remarks: sections.Remarks{Notes: p.notes, Facts: p.facts, Earlier: p.earlierRequests}, Closing: Closing(p.Task.Issue, m.Name()),
		Site: transcript.Site{Server: m.ServerURL, Repository: m.Name()},
	}
	for _, reason := range p.draftReasons() {
		options.DraftReasons = append(options.DraftReasons, m.Record.Redact(reason))
	}
	if p.Task.Mode() == intake.Join { // the body becomes a comment on a person's pull request
		return options
	}
	options.Template = m.pullTemplate()
	if p.isDraft() {
		options.Head = draftMark
	}
	return options
}

// draftReasons lists why the pull request is a draft. It omits failed checks and the outcome of an ended run,
// because the body shows these itself.
func (p *Proposal) draftReasons() (reasons []string) {
	if reason := p.unverifiedReason(); reason != "" {
		reasons = append(reasons, reason)
	}
	if p.Job.PullRequest.Draft {
		reasons = append(reasons, "the job asks for one (pull_request.draft).")
	}
	if p.Stopped != nil && p.ChainHead == "" {
		reasons = append(reasons, "a budget ended the work before it was done: "+p.Stopped.Message)
	}
	var before []string
	for _, row := range p.Verification.Rows {
		isConcerned := row.NotRun != transcript.NotConcerned
		if isConcerned && row.Passed && !transcript.CountsAsGreen(row.After, row.Flaky) { // it counts as passed, since it was red on the base
			before = append(before, row.Name)
		}
	}
	if len(before) > 0 {
		reasons = append(reasons, strings.Join(before, ", ")+" did not pass before the change either.")
	}
	return append(append(reasons, p.missingProofs()...), p.inspectionReasons()...)
}

// inspectionReasons lists signs in the change for which the job wants a draft.
func (p *Proposal) inspectionReasons() (reasons []string) {
	if p.Inspection == nil {
		return nil
	}
	if p.Job.Policy.Silenced == "draft" && p.Inspection.RefusesSilenced() {
		reasons = append(reasons, "a check may pass without testing: see "+transcript.CountNoun(len(p.Inspection.SilencedSigns)+p.Inspection.MoreSilencedSigns, "place")+" in this text (policy.silenced).")
	}
	if p.Job.Policy.WorkflowRisk == "draft" && p.Inspection.Risky() {
		reasons = append(reasons, "the branch starts workflows with rights that run files of the change (policy.workflow_risk).")
	}
	return reasons
}

// missingProofs lists why tests do not prove the change, if a check requires proofs.
func (p *Proposal) missingProofs() []string {
	required := func(row transcript.VerifyRow) bool {
		i := slices.IndexFunc(p.Job.Verify, func(c job.VerifyCheck) bool { return c.Name == row.Name })
		return i >= 0 && p.Job.Verify[i].Proves == job.ProvesRequired && row.NotRun != transcript.NotConcerned
	}
	if !p.Verification.Passed || !slices.ContainsFunc(p.Verification.Rows, required) {
		return nil
	}
	return append(p.unprovenTests(), p.brokenBaseTests()...)
}

// unprovenTests returns the reason that tests of the change do not prove it, or nil.
func (p *Proposal) unprovenTests() []string {
	proofs := p.Verification.BestProofs()
	if len(proofs) == 0 {
		return []string{"no test of the change proves it (proves: required)."}
	}
	var unproven []string
	for _, proof := range proofs {
		switch {
		case proof.Class != transcript.Proven:
			unproven = append(unproven, fmt.Sprintf("%q (%s)", proof.File, proof.Class))
		case proof.Shared:
			unproven = append(unproven, fmt.Sprintf("%q (not told from other files)", proof.File))
		}
	}
	if more := p.Verification.UnlistedProofs(); more > 0 {
		unproven = append(unproven, transcript.CountNoun(more, "more file"))
	}
	return joinReasons("tests of the change are not proven to fail without it: ", unproven)
}

// brokenBaseTests returns the reason that the change removed or broke tests of the base, or nil.
func (p *Proposal) brokenBaseTests() (broken []string) {
	for _, old := range p.Verification.BrokenOldTests() {
		broken = append(broken, fmt.Sprintf("%q (%s)", cmp.Or(old.Name, old.File), old.DescribeState()))
	}
	if why := p.Verification.OldTestsGap(); why != "" {
		broken = append(broken, "not known ("+why+")")
	}
	return joinReasons("tests of the base are not what they were: ", broken)
}

// joinReasons returns reason followed by up to ten of the parts, or nil without parts.
func joinReasons(reason string, parts []string) []string {
	if len(parts) == 0 {
		return nil
	}
	return []string{reason + clip.Some(parts, 10) + " (proves: required)."}
}

// isDraft reports whether the pull request must not be merged as it is.
func (p *Proposal) isDraft() bool {
	return !p.Verification.Passed || p.Stopped != nil || len(p.draftReasons()) > 0
}

// warnInPull adds a warning to the record. If the transcript is closed, the pull request's text gets it too.
func (m Publisher) warnInPull(p *Proposal, code, format string, args ...any) {
	m.Record.Warn(code, format, args...)
	if p.ChainHead != "" {
		p.notes = append(p.notes, m.Record.Redact(fmt.Sprintf(format, args...)))
	}
}

// templateFolders lists where GitHub looks for a pull request template, in order
// (https://docs.github.com/communities/using-templates-to-encourage-useful-issues-and-pull-requests).
var templateFolders = []string{".github", "", "docs"}

var templateNames = []string{"pull_request_template.md", "pull_request_template.txt", "pull_request_template"}

// maxTemplate is how much of a template is read, in bytes. The body shows less.
const maxTemplate = 64 << 10

// pullTemplate returns the base commit's pull request template, or "". If it cannot be read, that is only a
// warning.
func (m Publisher) pullTemplate() string {
	checkout := m.Workspace.Checkout()
	for _, folder := range templateFolders {
		names, err := checkout.BaseFiles(folder)
		if err != nil {
			m.Record.Warn("pull_request_template", "The pull request template could not be looked for: %v", err)
			return ""
		}
		at := slices.IndexFunc(names, func(name string) bool { return slices.Contains(templateNames, strings.ToLower(name)) })
		if at < 0 {
			continue
		}
		text, err := checkout.ReadBase(path.Join(folder, names[at]), maxTemplate)
		if err != nil {
			m.Record.Warn("pull_request_template", "The pull request template was left out: %v", err)
		}
		return string(text)
	}
	return ""
}

// readEarlierRequests reads the earlier requests from the body of the open pull request, for the new body and
// commit. Anybody may edit them, so nothing else depends on them.
func (f Forge) readEarlierRequests(ctx context.Context, p *Proposal) error {
	if p.Task.RequestText == "" || p.Task.Mode() == intake.Join || p.earlierRequests != nil {
		return nil
	}
	open, err := f.findOpenPull(ctx, p)
	if err != nil || open == nil {
		return err
	}
	p.earlierRequests = slices.DeleteFunc(body.Requests(open.Body), func(r sections.Request) bool { return r.Run == p.RunID })
	return nil
}

// maxEarlierText is how much of an earlier request a commit message shows, in UTF-16 code units.
// earlierInCommit is how many requests it shows.
const (
	maxEarlierText  = 1_000
	earlierInCommit = 10
)

// earlierParagraphs returns a paragraph for each earlier request, for the commit message.
func (p *Proposal) earlierParagraphs() (all []string) {
	for _, r := range p.earlierRequests[:min(len(p.earlierRequests), earlierInCommit)] {
		text := fmt.Sprintf("Earlier, asked for as %q:", markdown.Cut(markdown.Headline(r.Asked), 100))
		if r.Summary != "" {
			text += "\n" + markdown.Cut(r.Summary, maxEarlierText)
		}
		all = append(all, markdown.Commit(text))
	}
	return all
}
