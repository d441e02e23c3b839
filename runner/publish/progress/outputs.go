package progress

import (
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/runner/record/transcript/timeline"
)

// durations are what differs between two runs of a command that fails as before.
var durations = lazyregexp.New(`\b[0-9]+(?:\.[0-9]+)? ?(?:[nuµm]?s|sec|seconds?)\b`)

// seenBefore says whether the last output of that name was the same, durations aside.
func (w *Watch) seenBefore(o timeline.Output) bool {
	masked := durations().ReplaceAllString(o.Tail, "0 s")
	before, known := w.outputs[o.Name]
	if w.outputs == nil {
		w.outputs = map[string]string{}
	}
	w.outputs[o.Name] = masked
	return known && before == masked
}

// showOutput shows it below the line of its event: in a step as a part of the log that
// is folded. What was shown already is named alone.
func (w *Watch) showOutput(o timeline.Output) {
	var text strings.Builder
	title := Printable(o.Title())
	if w.seenBefore(o) {
		w.addToGroup("agent-ci:   " + title + ": as shown above\n")
		return
	}
	if w.Step == nil {
		text.WriteString("agent-ci:   " + title + ":\n")
	} else {
		w.beginGroup(title)
	}
	for line := range strings.Lines(o.Tail) {
		text.WriteString("    " + Printable(strings.TrimSuffix(line, "\n")) + "\n")
	}
	w.addToGroup(text.String())
}
