package progress

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/runner/transcript"
)

// output is the end of what a command that failed printed.
type output struct{ name, title, tail string }

// outputsOf are those that an event tells of: the files that have them may be gone when
// somebody reads the log.
func outputsOf(e transcript.Event) []output {
	var all []output
	add := func(name, end, tail string) {
		if tail != "" {
			all = append(all, output{Printable(name), Printable(fmt.Sprintf("The last lines of %s (%s)", name, end)), tail})
		}
	}
	switch e.Type {
	case transcript.TypeSetup:
		var step transcript.Setup
		if json.Unmarshal(e.Data, &step) == nil {
			add("setup "+step.Name, fmt.Sprintf("exit %d", step.ExitCode), step.Tail)
		}
	case transcript.TypeVerify:
		var table transcript.Verify
		if json.Unmarshal(e.Data, &table) != nil {
			break
		}
		for _, row := range table.Rows {
			end := row.After
			if table.Attempt == 0 {
				end = row.Before + " before the change"
			}
			add(row.Name, end, row.Tail)
		}
	}
	return all
}

// durations are what differs between two runs of a command that fails as before.
var durations = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b[0-9]+(?:\.[0-9]+)? ?(?:[nuµm]?s|sec|seconds?)\b`)
})

// seenBefore says whether the last output of that name was the same, durations aside.
func (w *Watch) seenBefore(o output) bool {
	masked := durations().ReplaceAllString(o.tail, "0 s")
	before, known := w.outputs[o.name]
	if w.outputs == nil {
		w.outputs = map[string]string{}
	}
	w.outputs[o.name] = masked
	return known && before == masked
}

// showOutput shows it below the line of its event: in a step as a part of the log that
// is folded. What was shown already is named alone.
func (w *Watch) showOutput(o output) {
	var text strings.Builder
	if w.seenBefore(o) {
		w.said("agent-ci:   " + o.title + ": as shown above\n")
		return
	}
	if w.Step == nil {
		text.WriteString("agent-ci:   " + o.title + ":\n")
	} else {
		w.begin(o.title)
	}
	for line := range strings.Lines(o.tail) {
		text.WriteString("    " + Printable(strings.TrimSuffix(line, "\n")) + "\n")
	}
	w.said(text.String())
}
