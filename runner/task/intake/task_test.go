package intake_test

import (
	"testing"

	"github.com/agent-ci/agent-ci/runner/task/form"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/intake"
)

// TestRecordedRestoresTask reads back from the transcript what a run that goes on needs.
func TestRecordedRestoresTask(t *testing.T) {
	issue := form.Issue{Repository: "o/r", Number: 7}
	for name, task := range map[string]intake.Task{
		"a prompt": {Task: transcript.Task{Source: "prompt", Text: "Greet."}, Name: "prompt"},
		"an issue": {
			Task: transcript.Task{Source: "issue", URL: "https://forge/o/r/issues/7", Title: "Greet", Text: "Say hello.", InputDigest: "5a"}, Name: "issue o/r#7",
			Issue: &issue, Author: &forge.User{Login: "mona", ID: 5},
		},
		"an event": {Name: "event", Task: transcript.Task{Source: "event", Text: "Greet.", Trigger: "label agent-ci", Actor: "octocat", ActorID: 1}},
	} {
		got := intake.TaskFromTranscript(task.TranscriptEvent())
		got.SHA256, got.Task.Issue, got.Task.Author, got.AuthorID = "", "", "", 0 // the transcript alone has them
		must.Same(t, task, got, name)
	}
	bot := intake.Task{Author: &forge.User{Login: "helper[bot]", ID: 5, Bot: true}}
	if got := bot.TranscriptEvent(); got.Author != "" || got.AuthorID != 0 {
		t.Errorf("a bot is told as an author: %+v", got)
	}
	for _, text := range []string{"", "#7", "nonsense"} {
		if got := intake.TaskFromTranscript(transcript.Task{Source: "issue", Issue: text}); got.Issue != nil || got.Name != "issue" {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

func TestModeOf(t *testing.T) {
	for want, pull := range map[intake.Mode]*forge.PullRequest{
		intake.New: nil, intake.Continue: {Head: "agent-ci/greet"}, intake.Join: {Head: "agent-cities"},
	} {
		must.Same(t, want, intake.ModeOf(pull), pull)
	}
}

func TestIssueOfKey(t *testing.T) {
	type known struct {
		Name   string
		Number int
	}
	for key, want := range map[string]known{
		"issue-7": {"", 7}, "greeter-issue-7": {"greeter", 7}, "a-issue-1-issue-2": {"a-issue-1", 2},
		"greeter": {}, "tissue-7": {}, "issue-0": {}, "issue-07": {}, "issue-7-more": {}, "issue-1234567890": {}, "": {},
	} {
		name, number := intake.IssueOfKey(key)
		must.Same(t, want, known{name, number}, key)
		must.Same(t, want.Number, intake.IssueOfBranch(intake.BranchPrefix+key), key)
	}
}

// TestIsFinished reads the mark of a body. Without one the body is a person's, and
// is left as it is.
func TestIsFinished(t *testing.T) {
	for body, want := range map[string]bool{
		intake.FinishedMark("c1") + "Hello.": true, "Hello.": true, "": true,
		intake.FinishedMark("c2") + "Hello.": false, intake.FinishedMark("c12"): false, intake.UnfinishedMark: false, intake.UncommentedMark: false,
	} {
		must.Same(t, want, intake.IsFinished(body, "c1"), body)
	}
}
