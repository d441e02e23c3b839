package intake_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

func TestRequestFollowsEventAndJob(t *testing.T) {
	own := &job.Job{Task: job.Task{Prompt: "Greet."}}
	elsewhere := inActions
	elsewhere.Repository = "o"
	nowhere := eventOf(t, "issues", labeled)
	nowhere.Surroundings = elsewhere
	for name, c := range map[string]struct {
		event intake.Event
		job   *job.Job
		ends  string
		asks  bool
	}{
		"a label":                         {eventOf(t, "issues", labeled), trusting(), "", true},
		"a task of the job's own":         {eventOf(t, "issues", labeled), own, "", false},
		"a broken event that is not used": {eventOf(t, "issues", `{`), own, "", false},
		"a broken event":                  {eventOf(t, "issues", `{`), trusting(), "invalid_input/event", false},
		"no event":                        {eventOf(t, "", ""), trusting(), "invalid_input/event", false},
		"an event of no repository":       {nowhere, trusting(), "invalid_input/event", false},
		"what asks for nothing":           {eventOf(t, "push", `{}`), trusting(), "skipped/event_asks_nothing", false},
	} {
		request, err := c.event.Request(c.job)
		if outcometest.End(err) != c.ends || (request != nil) != c.asks {
			t.Errorf("%s: %v, %v", name, request, err)
		}
	}
}

// TestParsesTypedIssues is about what people type when they start a workflow.
func TestParsesTypedIssues(t *testing.T) {
	for typed, want := range map[string]struct {
		number int
		ends   string
	}{
		"7":                                    {7, ""},
		" #7 ":                                 {7, ""},
		"o/r#7":                                {7, ""},
		"O/R#7":                                {7, ""},
		"https://github.com/o/r/issues/7":      {7, ""},
		"github.com/o/r/pull/7#issuecomment-1": {7, ""},
		"seven":                                {0, "invalid_input/event"},
		"#0":                                   {0, "invalid_input/event"},
		"07":                                   {0, "invalid_input/event"},
		"o/r":                                  {0, "invalid_input/event"},
		"7 and 8":                              {0, "invalid_input/event"},
		"https://github.com/o/r":               {0, "invalid_input/event"},
		"o/other#7":                            {0, "invalid_input/issue"},
		"https://github.com/o/other/issues/7":  {0, "invalid_input/issue"},
		"https://ghe.example/o/r/issues/7":     {0, "invalid_input/issue"},
		"":                                     {0, "invalid_input/event"},
	} {
		input := must.Get(json.Marshal(typed))(t)
		for name, payload := range map[string]string{"workflow_dispatch": `{"inputs": {"issue": %s}}`, "repository_dispatch": `{"client_payload": {"issue": %s}}`} {
			ends := want.ends
			if name == "repository_dispatch" && typed == "" {
				ends = "skipped/event_asks_nothing" // a program sends it, maybe to others
			}
			e := eventOf(t, name, fmt.Sprintf(payload, input))
			request, err := e.Request(trusting())
			if outcometest.End(err) != ends || request != nil && request.Number != want.number {
				t.Errorf("%s %q: %+v, %v", name, typed, request, err)
			}
			if number, err := e.SubjectNumber(); number != want.number || (err != nil) != (ends != "" && typed != "") {
				t.Errorf("%s %q: the subject is %d, %v", name, typed, number, err)
			}
		}
	}
	both := eventOf(t, "workflow_dispatch", `{"inputs": {"issue": "7", "prompt": "Greet."}}`)
	must.Same(t, "invalid_input/event", outcometest.End(must.Err(both.Request(trusting()))))
}

// TestBaseIgnoresPullRequestHead takes care that the head of a pull request, which anybody may write,
// configures nothing.
func TestBaseIgnoresPullRequestHead(t *testing.T) {
	const pull = `{"pull_request": {"head": {"ref": "theirs"}, "base": {"ref": "next"}}}`
	outside := eventOf(t, "pull_request", pull)
	outside.InActions = false
	for want, e := range map[string]intake.Event{"next": eventOf(t, "pull_request", pull), "": outside} {
		must.Same(t, want, e.Base(), "the base")
	}
	for _, name := range []string{"", "issues"} {
		must.Same(t, "", eventOf(t, name, labeled).Base(), name)
	}
}
