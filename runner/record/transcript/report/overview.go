package report

import (
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/sections"
)

// overview is the result of the first pass: everything around the timeline.
type overview struct {
	View    *transcript.View
	limit   int
	endless map[int64]bool

	sections.Timeline
	entries   int
	Problems  int
	lastEvent string
}

// maxPatches is how many calls are named beside a file.
const maxPatches = 5

// note collects an entry's facts for the overview.
func (o *overview) note(e *entry) {
	o.entries++
	if e.Bad {
		o.Problems++
	}
	o.lastEvent = e.At
	if e.refused != "" {
		o.refuse(e)
	}
	switch {
	case e.Kind == "turn":
		o.Thinking += e.seconds
	case e.Kind == "call":
		if !e.Nested {
			o.Working += e.seconds
		}
		o.call(e)
	default:
		o.Checking += e.seconds
	}
}

func (o *overview) refuse(e *entry) {
	refused := sections.Refusal{Event: e.Seq, Tool: e.Name, Topic: e.Topic, Rule: e.refused}
	if e.Kind == "call" {
		o.RefusedCalls++
	} else {
		o.RefusedHosts++
		refused.Tool = "host"
	}
	if len(o.Refusals) < maxRows {
		o.Refusals = append(o.Refusals, refused)
	}
}

func (o *overview) call(e *entry) {
	if e.Bad {
		return
	}
	for _, path := range e.paths {
		if calls := o.Patches[path]; len(calls) < maxPatches && len(o.Patches) < 10*maxRows {
			o.Patches[path] = append(calls, e.Seq)
		}
	}
}
