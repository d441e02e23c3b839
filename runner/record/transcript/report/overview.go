package report

import (
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/sections"
)

// overview is the result of the first pass: everything except the timeline.
type overview struct {
	View       *transcript.View
	limit      int
	unfinished map[int64]bool

	sections.Timeline
	entries   int
	Problems  int
	lastEvent string
}

// maxPatches limits the calls that are listed for a file.
const maxPatches = 5

// countEntry adds an entry to the counts, times, refusals and patches.
func (o *overview) countEntry(e *entry) {
	o.entries++
	if e.Bad {
		o.Problems++
	}
	o.lastEvent = e.At
	if e.refused != "" {
		o.countRefusal(e)
	}
	switch {
	case e.Kind == "turn":
		o.ModelSeconds += e.seconds
	case e.Kind == "call":
		if !e.Nested {
			o.CallSeconds += e.seconds
		}
		o.addPatches(e)
	default:
		o.CheckSeconds += e.seconds
	}
}

// countRefusal counts a refused call or host, and lists the first ones.
func (o *overview) countRefusal(e *entry) {
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

// addPatches records which files a successful call patched.
func (o *overview) addPatches(e *entry) {
	if e.Bad {
		return
	}
	for _, path := range e.paths {
		if calls := o.Patches[path]; len(calls) < maxPatches && len(o.Patches) < 10*maxRows {
			o.Patches[path] = append(calls, e.Seq)
		}
	}
}
