package report

import (
	"cmp"
	"fmt"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

func (o *overview) header() g.Node {
	var notices g.Node
	if all := o.notices(); len(all) > 0 {
		notices = h.Ul(h.Class("notices"), h.Aria("label", "Notices"), g.Map(all, func(notice string) g.Node { return h.Li(g.Text(notice)) }))
	}
	return h.Header(
		h.P(h.Class("brand"), g.Text("agent-ci report")),
		h.H1(g.Text(o.title())),
		o.ending().node(),
		factList("figures", o.figures()),
		notices,
		h.Nav(h.Aria("label", "Sections"), h.Ul(o.contents())),
	)
}

// contents are links to the sections that there are, in their order.
func (o *overview) contents() g.Group {
	var all g.Group
	add := func(when bool, id, name string) {
		if when {
			all = append(all, h.Li(within(id, name)))
		}
	}
	add(o.begun(), "summary", "Summary")
	add(true, "task", "Task")
	add(o.setupFailed(), "setup", "Setup")
	add(o.begun(), "plan", "Plan")
	add(o.begun(), "verification", "Verification")
	add(o.begun(), "files", "Files")
	add(len(o.View.Publish) > 0, "published", "Published")
	add(len(o.View.Warnings) > 0, "warnings", "Warnings")
	add(true, "timeline", "Timeline")
	add(true, "confinement", "Confinement")
	add(true, "usage", "Usage")
	add(true, "run", "Run")
	add(len(o.View.Setup) > 0 && !o.setupFailed(), "setup", "Setup")
	add(o.configured(), "settings", "Settings")
	return all
}

func (o *overview) title() string {
	v := o.View
	return cmp.Or(field(v.Task.Title), field(markdown.Headline(v.Task.Text)), field(v.Started.Key), "A run of agent-ci")
}

// notices are what a reader must not overlook.
func (o *overview) notices() []string {
	v := o.View
	var all []string
	add := func(when bool, text string) {
		if when {
			all = append(all, text)
		}
	}
	add(v.Started.Scripted != "", "This run was scripted: the answers come from the session file "+field(v.Started.Scripted)+", no model was asked.")
	add(v.Policy.Unconfined(), "Commands ran unconfined, with all rights of the user who started agent-ci.")
	add(v.Torn, "The transcript's last line is torn: the run was killed, or its disk was full.")
	changed := v.Change != nil && len(v.Change.Files) > 0
	checked := v.Verify != nil && len(v.Verify.Rows) > 0
	add(changed && !checked, "No verify command was run: nothing says that the change works.")
	add(changed && checked && v.Verify.Attempt == 0, "The change was not verified.")
	told := v.Finished != nil && v.Finished.Outcome == string(outcome.VerifyFailed)
	add(v.Verify != nil && v.Verify.Attempt > 0 && !v.Verify.Passed && !told, "Verification failed.")
	return all
}

func (o *overview) figures() []fact {
	v := o.View
	took := o.lastEvent
	if v.Finished != nil {
		took = transcript.Duration(v.Finished.Seconds)
	}
	all := []fact{
		{Name: "Time", Value: took},
		{Name: "Turns", Value: transcript.Thousands(int64(v.Turns))},
		{Name: "Calls", Value: transcript.Thousands(int64(v.Calls))},
		{Name: "Tokens", Value: transcript.Thousands(v.Usage.Input + v.Usage.Output)},
	}
	if v.Change != nil {
		all = append(all, fact{Name: "Change", Value: v.Change.Lines()})
	}
	for _, p := range v.Publish {
		if page := link(p.URL); page != "" && p.Number > 0 {
			all = append(all, fact{Name: "Pull request", Value: fmt.Sprintf("#%d", p.Number), Link: page})
			break
		}
	}
	return all
}
