package report

import (
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// mostRows is the most that a list or table of the overview shows.
const mostRows = 200

// overview is what the first reading finds: what the page says around the timeline.
type overview struct {
	View    *transcript.View
	limit   int
	endless map[int64]bool

	entries   int
	Problems  int
	refused   int                // calls and hosts
	hosts     int                // of these
	Refusals  []reference        // the first ones
	Patches   map[string][]int64 // the events of calls, by path
	thinking  float64            // seconds
	working   float64
	checking  float64
	lastEvent string
}

// reference is an entry named elsewhere on the page.
type reference struct {
	Seq               int64
	Tool, Topic, Rule string
}

// mostPatches is how many calls are named beside a file.
const mostPatches = 5

// note takes from an entry what the overview tells.
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
		o.thinking += e.seconds
	case e.Kind == "call":
		if !e.Nested {
			o.working += e.seconds
		}
		o.call(e)
	case e.Name == "Verification":
		o.checking += e.seconds
	}
}

func (o *overview) refuse(e *entry) {
	o.refused++
	if e.Kind != "call" {
		o.hosts++
	}
	if len(o.Refusals) < mostRows {
		o.Refusals = append(o.Refusals, reference{e.Seq, e.Name, e.Topic, e.refused})
	}
}

func (o *overview) call(e *entry) {
	if e.Bad {
		return
	}
	for _, path := range e.paths {
		if calls := o.Patches[path]; len(calls) < mostPatches && len(o.Patches) < 10*mostRows {
			o.Patches[path] = append(calls, e.Seq)
		}
	}
}
