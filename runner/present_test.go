package runner

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/policy/secrets"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

func TestClosingIsOfTheSameRepository(t *testing.T) {
	for _, test := range []struct {
		name  string
		issue *job.Issue
		want  string
	}{
		{"no issue", nil, ""},
		{"this repository", &job.Issue{Repository: "Octo/Widgets", Number: 7}, "Fixes #7"},
		{"another", &job.Issue{Repository: "octo/other", Number: 7}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := &run{task: task{issue: test.issue}, repo: repository{Repository: silent{}.Repository("octo/widgets")}}
			if got := r.closing(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestNotesAndDoubtsAreSaidOnce(t *testing.T) {
	const token = "ghp_0123456789abcdefghijABCDEFGHIJ456789"
	r := &run{job: new(job.Job), rec: record.New("", []secrets.Value{{Name: "TOKEN", Secret: token}}), table: transcript.Verify{Passed: true}}
	if r.draft() {
		t.Error("a green change is a draft")
	}
	for range 2 {
		r.tell("Said with " + token + ".")
		r.doubt("Not sure.")
	}
	if diff := cmp.Diff([]string{"Said with [secret TOKEN]."}, r.notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Not sure."}, r.draftReasons()); diff != "" || !r.draft() {
		t.Errorf("it is a draft: %v, since (-want +got):\n%s", r.draft(), diff)
	}
}

func TestFinishedBodies(t *testing.T) {
	const sha = "0123456789012345678901234567890123456789"
	r := &run{published: published{commit: sha}}
	for _, test := range []struct {
		name, body string
		want       bool
	}{
		{"a person's", "My own words.", true},
		{"of this commit", draftMark + commitMark(sha) + "Done.", true},
		{"of another", commitMark("9"+sha[1:]) + "Done.", false},
		{"not finished", r.markedAs(commitMark(sha)+"Done.", unfinishedMark), false},
		{"without its comments", r.markedAs(draftMark+commitMark(sha)+"Done.", aloneMark), false},
		{"edited on its page", "<!-- agent-ci: commit " + sha + " -->\r\nDone.", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := isFinished(test.body, sha); got != test.want {
				t.Errorf("isFinished(%q) = %v", test.body, got)
			}
		})
	}
}
