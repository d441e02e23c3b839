package transcript_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/transcripttest"
)

type happening = transcripttest.Happening

// Events as they come in runs; what else they say does not matter here.
var (
	started   = happening{Kind: transcript.TypeRunStarted, Data: transcript.RunStarted{RunID: "r"}}
	placed    = happening{Kind: transcript.TypeWorkspace, Data: transcript.Workspace{BaseSHA: "b"}}
	asked     = happening{Kind: transcript.TypeModelRequest, Data: transcript.ModelRequest{Turn: 1}}
	answered  = happening{Kind: transcript.TypeModelResponse, Data: transcript.ModelResponse{Turn: 1}}
	calling   = transcripttest.Called(1, "a", "x", "")
	resumed   = happening{Kind: transcript.TypeRunResumed, Data: transcript.RunResumed{Limits: []string{"limits.turns=9"}}}
	cancelled = happening{Kind: transcript.TypeRunFinished, Data: transcript.RunFinished{Outcome: "cancelled"}}
)

func verified(attempt int) happening {
	return happening{Kind: transcript.TypeVerify, Data: transcript.Verify{Attempt: attempt}}
}

func changed(tree, base string) happening {
	return happening{Kind: transcript.TypeChange, Data: transcript.Change{TreeSHA: tree, BaseSHA: base}}
}

func published(step, sha string) happening {
	return happening{Kind: transcript.TypePublish, Data: transcript.Publish{Step: step, HeadSHA: sha}}
}

func surveyed(t *testing.T, log string) *transcript.View {
	t.Helper()
	return must.Get(transcript.FoldEvents(strings.NewReader(log), nil))(t)
}

// workInWords tells of each thing that a view knows of the work.
func workInWords(v *transcript.View) string {
	attempt := func(table *transcript.Verify) string {
		if table == nil {
			return "none"
		}
		return fmt.Sprint(table.Attempt)
	}
	tree := func(change *transcript.Change) string {
		if change == nil {
			return "none"
		}
		return change.TreeSHA
	}
	return fmt.Sprintf("change %s, own %s; table %s, own %s, base %s; %d attempts, done %t, published %q, commit %q",
		tree(v.Change), tree(v.Work.Change), attempt(v.Verify), attempt(v.Work.Verify), attempt(v.Baseline),
		v.Work.VerifyAttempts, v.Work.Done, v.Work.LastPublishStep, v.CommitSHA())
}

func TestSurveyTracksWork(t *testing.T) {
	tests := []struct {
		name string
		run  []happening
		want string
	}{
		{"nothing yet", nil, `change none, own none; table none, own none, base none; 0 attempts, done false, published "", commit ""`},
		{
			"the baseline alone",
			[]happening{verified(0), asked},
			`change none, own none; table 0, own 0, base 0; 0 attempts, done false, published "", commit ""`,
		},
		{
			"a change that nobody ended",
			[]happening{verified(0), asked, changed("t", "")},
			`change t, own t; table 0, own 0, base 0; 0 attempts, done false, published "", commit ""`,
		},
		{
			"a change while a call ran",
			[]happening{asked, calling, answered, changed("t", "")},
			`change t, own t; table none, own none, base none; 0 attempts, done false, published "", commit ""`,
		},
		{
			"a change after the last words",
			[]happening{verified(0), asked, answered, changed("t", ""), verified(1)},
			`change t, own t; table 1, own 1, base 0; 0 attempts, done true, published "", commit ""`,
		},
		{
			"several attempts",
			[]happening{verified(0), asked, answered, changed("t", ""), verified(1), asked, answered, changed("u", ""), verified(2), asked},
			`change u, own u; table 2, own 2, base 0; 1 attempts, done false, published "", commit ""`,
		},
		{
			"a base that moved",
			[]happening{verified(0), asked, answered, changed("t", ""), verified(1), changed("u", "c"), verified(0), verified(1)},
			`change u, own t; table 1, own 1, base 0; 0 attempts, done true, published "", commit ""`,
		},
		{
			"published",
			[]happening{asked, answered, changed("t", ""), published("commit", "c"), published("push", "")},
			`change t, own t; table none, own none, base none; 0 attempts, done true, published "push", commit "c"`,
		},
		{
			"went on after publishing",
			[]happening{asked, answered, published("commit", "c"), published("commit", "d"), published("push", ""), resumed, asked},
			`change none, own none; table none, own none, base none; 0 attempts, done false, published "", commit "d"`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			must.Same(t, test.want, workInWords(surveyed(t, transcripttest.Recorded(t, test.run))))
		})
	}
}

func TestSurveyTracksResume(t *testing.T) {
	view := surveyed(t, transcripttest.Recorded(t, []happening{started, placed, cancelled}))
	if view.Finished == nil || !view.StartedWork() {
		t.Errorf("stopped: finished %v, begun %t", view.Finished, view.StartedWork())
	}
	view = surveyed(t, transcripttest.Recorded(t, []happening{started, placed, cancelled, resumed}))
	if view.Finished != nil {
		t.Errorf("went on: finished %v", view.Finished)
	}
	view = surveyed(t, transcripttest.Recorded(t, []happening{started, resumed, placed, resumed, cancelled}))
	if view.Finished == nil || view.Finished.Outcome != "cancelled" {
		t.Errorf("ended again: %+v", view.Finished)
	}
	confined := happening{Kind: transcript.TypePolicy, Data: transcript.Policy{WorkTree: "checkout", NoOverlay: "it takes namespaces"}}
	elsewhere := happening{Kind: transcript.TypeRunResumed, Data: transcript.RunResumed{WorkTree: "overlay"}}
	view = surveyed(t, transcripttest.Recorded(t, []happening{started, confined, placed, elsewhere, resumed}))
	must.Same(t, "overlay", view.Policy.DescribeWorkTree(), "it works in the work tree")
}

// A view without entries knows the same as one with them, whichever way its lines
// are read.
func TestSurveyMatchesProject(t *testing.T) {
	log := transcripttest.Recorded(t, append(transcripttest.Greeting(), resumed, transcripttest.Finished(154))) + `{"v":1,`
	want := must.Get(transcript.FoldWithEntries(strings.NewReader(log)))(t)
	want.Entries = nil
	for name, visit := range map[string]func(*transcript.View, transcript.Event) error{
		"alone": nil, "visited": func(*transcript.View, transcript.Event) error { return nil },
	} {
		must.Same(t, want, must.Get(transcript.FoldEvents(strings.NewReader(log), visit))(t), name)
	}
}

func TestSurveyVisitsFoldedEvents(t *testing.T) {
	var seen []string
	log := transcripttest.Recorded(t, []happening{started, {Kind: "later.type", Data: 1}, asked, answered})
	_, err := transcript.FoldEvents(strings.NewReader(log+`{"v":1`), func(v *transcript.View, e transcript.Event) error {
		seen = append(seen, fmt.Sprintf("%s %s %d", e.Type, v.Started.RunID, v.Turns))
		return nil
	})
	want := []string{"run.started r 0", "later.type r 0", "model.request r 0", "model.response r 1"}
	must.Do(t, err)
	must.Same(t, want, seen)
	enough := errors.New("enough")
	must.Is(t, enough, must.Err(transcript.FoldEvents(strings.NewReader(log), func(*transcript.View, transcript.Event) error { return enough })), "an error of who looks at events")
}
