package intake_test

import (
	"testing"

	"github.com/agent-ci/agent-ci/runner/intake"
	"github.com/agent-ci/agent-ci/runner/job"
)

func TestRequest(t *testing.T) {
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
		"no event":                        {eventOf(t, "", ""), trusting(), "invalid_input/no_event", false},
		"an event of no repository":       {nowhere, trusting(), "invalid_input/event", false},
		"what asks for nothing":           {eventOf(t, "push", `{}`), trusting(), "skipped/event_asks_nothing", false},
	} {
		request, err := c.event.Request(c.job)
		if reasonOf(err) != c.ends || (request != nil) != c.asks {
			t.Errorf("%s: %v, %v", name, request, err)
		}
	}
}

func TestUnusableEvents(t *testing.T) {
	for name, c := range map[string]struct {
		event intake.Event
		want  string
	}{
		"none":   {eventOf(t, "", ""), ""},
		"whole":  {eventOf(t, "push", `{}`), ""},
		"broken": {eventOf(t, "push", `[`), "invalid_input/event"},
	} {
		if err := c.event.Unusable(); reasonOf(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBase takes care that the head of a pull request, which anybody may write,
// configures nothing.
func TestBase(t *testing.T) {
	const pull = `{"pull_request": {"head": {"ref": "theirs"}, "base": {"ref": "next"}}}`
	outside := eventOf(t, "pull_request", pull)
	outside.InActions = false
	for want, e := range map[string]intake.Event{"next": eventOf(t, "pull_request", pull), "": outside} {
		if got := e.Base(); got != want {
			t.Errorf("the base is %q, want %q", got, want)
		}
	}
	for _, name := range []string{"", "issues"} {
		if got := eventOf(t, name, labeled).Base(); got != "" {
			t.Errorf("the event %q has the base %q", name, got)
		}
	}
}
