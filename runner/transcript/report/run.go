package report

import (
	"slices"

	g "maragu.dev/gomponents"

	"github.com/agent-ci/agent-ci/runner/transcript"
)

func (o *overview) runSection() g.Node {
	return section("run", "Run", factList("facts", o.run()))
}

func (o *overview) run() []fact {
	v := o.View
	all := []fact{
		{Name: "Run", Value: field(v.Started.RunID), Link: link(v.Started.Link), Code: true},
		{Name: "agent-ci", Value: field(v.Started.Version)},
		{Name: "Task key", Value: field(v.Started.Key), Code: true},
		{Name: "Repository", Value: field(v.Workspace.Repository), Code: true},
		{Name: "Base", Value: field(v.Workspace.Base + " " + short(v.Workspace.BaseSHA)), Link: o.commit(v.Workspace.BaseSHA), Code: true},
		{Name: "Branch", Value: field(o.branch()), Code: true},
		{Name: "Publish", Value: field(v.Started.Publish)},
		{Name: "Events", Value: transcript.Thousands(v.Events)},
		{Name: "Chain's end", Value: v.Head, Code: true},
	}
	if !v.StartedAt.IsZero() {
		all = slices.Insert(all, 1, fact{Name: "Started", Value: v.StartedAt.UTC().Format("2006-01-02 15:04:05 UTC")})
	}
	return slices.DeleteFunc(all, func(f fact) bool { return f.Value == "" })
}

// branch is the branch that the run committed to; empty where it made none.
func (o *overview) branch() string {
	for _, p := range slices.Backward(o.View.Publish) {
		if p.Branch != "" {
			return p.Branch
		}
	}
	return ""
}
