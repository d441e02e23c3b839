package publish

import (
	"testing"

	"github.com/agent-ci/agent-ci/runner/task/form"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/secrets"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

func TestClosesIssueOfSameRepository(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		issue *form.Issue
		want  string
	}{
		{"no issue", nil, ""},
		{"this repository", &form.Issue{Repository: "Octo/Widgets", Number: 7}, "Fixes #7"},
		{"another", &form.Issue{Repository: "octo/other", Number: 7}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			must.Same(t, test.want, Closing(test.issue, "octo/widgets"))
		})
	}
}

// A closed transcript tells of no warning: the body does, without secrets.
func TestNotesWarningsAfterTranscriptCloses(t *testing.T) {
	t.Parallel()
	const token = "ghp_0123456789abcdefghijABCDEFGHIJ456789"
	m := Publisher{Record: record.New("", []secrets.Value{{Name: "TOKEN", Secret: token}})}
	open, closed := &Proposal{}, &Proposal{CommitFacts: CommitFacts{ChainHead: "ab12"}}
	for _, p := range []*Proposal{open, closed} {
		m.warnInPull(p, "said", "Said with %s.", token)
	}
	must.None(t, open.notes, "of an open transcript")
	must.Same(t, []string{"Said with [secret TOKEN]."}, closed.notes, "of a closed one")
	must.Same(t, 1, len(m.Record.Warnings()))
}

func TestDecidesAndExplainsDrafts(t *testing.T) {
	t.Parallel()
	row := func(name, before, after string, passed bool) transcript.VerifyRow {
		return transcript.VerifyRow{Name: name, Before: before, After: after, Passed: passed}
	}
	green := transcript.Verify{Passed: true, Rows: []transcript.VerifyRow{row("test", "green", "green", true)}}
	stop := outcome.Stopf(outcome.BudgetExceeded, "tokens", "Out of tokens.")
	old := gitops.Base{Branch: "main", SHA: "1111111111111111"}
	for name, test := range map[string]struct {
		p     Proposal
		draft bool
		want  []string
	}{
		"green":        {p: Proposal{Verification: green}},
		"no checks":    {p: Proposal{Verification: transcript.Verify{Passed: true}, descriptionFacts: descriptionFacts{movedFrom: old}}},
		"red":          {p: Proposal{Verification: transcript.Verify{}}, draft: true},
		"still red":    {p: Proposal{Verification: transcript.Verify{Passed: true, Rows: []transcript.VerifyRow{row("lint", "red", "red", true), row("slow", "timeout", "timeout", true)}}}, draft: true, want: []string{"lint, slow did not pass before the change either."}},
		"stopped":      {p: Proposal{Verification: green, Stopped: stop}, draft: true, want: []string{"a budget ended the work before it was done: Out of tokens."}},
		"told by end":  {p: Proposal{Verification: green, Stopped: stop, CommitFacts: CommitFacts{ChainHead: "ab12"}}, draft: true},
		"moved on":     {p: Proposal{Verification: green, descriptionFacts: descriptionFacts{movedFrom: old}, Base: gitops.Base{Branch: "main", SHA: "2222222222222222"}}, draft: true, want: []string{"verified on 111111111111, not on 222222222222: main moved in between, and the change was merged onto it."}},
		"never moved":  {p: Proposal{Verification: green, Base: old}},
		"asked for it": {p: Proposal{Verification: green, Job: &job.Job{PullRequest: job.PullRequest{Draft: true}}}, draft: true, want: []string{"the job asks for one (pull_request.draft)."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.p.Job == nil {
				test.p.Job = &job.Job{}
			}
			must.Same(t, test.want, test.p.draftReasons(), "reasons")
			must.Same(t, test.draft, test.p.isDraft(), "draft")
		})
	}
}

func TestRecognisesFinishedBodies(t *testing.T) {
	t.Parallel()
	const sha = "0123456789012345678901234567890123456789"
	for _, test := range []struct {
		name, body string
		want       bool
	}{
		{"a person's", "My own words.", true},
		{"of this commit", draftMark + intake.FinishedMark(sha) + "Done.", true},
		{"of another", intake.FinishedMark("9"+sha[1:]) + "Done.", false},
		{"not finished", markUnfinished(intake.FinishedMark(sha)+"Done.", sha, intake.UnfinishedMark), false},
		{"without its comments", markUnfinished(draftMark+intake.FinishedMark(sha)+"Done.", sha, intake.UncommentedMark), false},
		{"edited on its page", "<!-- agent-ci: commit " + sha + " -->\r\nDone.", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			must.Same(t, test.want, intake.IsFinished(test.body, sha), test.body)
		})
	}
}
