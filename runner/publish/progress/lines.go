package progress

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/record/transcript/sections"
	"github.com/agent-ci/agent-ci/runner/record/transcript/timeline"
	"github.com/agent-ci/agent-ci/runner/task/actions"
)

// Watch shows the events of a run: as lines of JSON, as words on a terminal, as groups of a step's log, and in
// a comment. A nil field shows nothing there.
type Watch struct {
	Events         io.Writer // gets each event as a line of JSON
	Lines          io.Writer // gets lines for a person
	Terminal       *Terminal // that Lines writes to; nil where that is none
	Step           *actions.Step
	NoRunDirectory bool // the run leaves no directory, so its id is not shown

	mu      sync.Mutex              // guards what follows, and Lines
	current *status                 // nil before its first use
	live    bool                    // the status is shown
	drawn   bool                    // as the last line of the terminal
	written time.Time               // when the last line was
	group   string                  // the part of the log that has begun
	opened  bool                    // it has a line
	outputs map[string]string       // the last ones of commands that failed, without their durations
	comment atomic.Pointer[comment] // while it is shown
}

// Show is the sink of a transcript.
func (w *Watch) Show(e transcript.Event) {
	w.writeJSON(e)
	w.showEvent(e)
	if c := w.comment.Load(); c != nil { // which may wait for a server
		c.applyEvent(e)
	}
}

func (w *Watch) writeJSON(e transcript.Event) {
	if w.Events == nil {
		return
	}
	line, err := e.Line()
	if err == nil {
		_, err = w.Events.Write(append(w.harmlessJSON(line), '\n'))
	}
	if err != nil {
		w.Events = nil // nobody reads any more
	}
}

// showEvent updates the status and writes the lines of an event: the event itself, outputs of failed commands,
// and at the end of the run the verdict.
func (w *Watch) showEvent(e transcript.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status().applyEvent(e, time.Now())
	group := string(w.status().phase)
	if e.Type == transcript.TypeRunFinished {
		group = "" // the run's end belongs to no group
	}
	w.beginGroup(group)
	if w.Events != nil { // events go to the same log, which then needs an open group
		w.openGroup()
	}
	if !(w.NoRunDirectory && e.Type == transcript.TypeRunStarted) {
		if line := w.eventLine(e); line != "" {
			w.addToGroup("agent-ci: " + line + "\n")
		}
	}
	if description, err := timeline.Describe(e); err == nil {
		for _, each := range description.Outputs {
			w.showOutput(each)
		}
	}
	if tone, verdict := sections.Verdict(w.status().run.View(), false); e.Type == transcript.TypeRunFinished && len(verdict) > 0 {
		w.addToGroup("agent-ci: " + document.Sign(tone) + Printable(verdict.String()) + "\n")
	}
	w.draw()
}

// harmlessJSON escapes the bracket that begins an old workflow command. In a JSON string the escape means the
// same.
func (w *Watch) harmlessJSON(line []byte) []byte {
	if w.Step == nil {
		return line
	}
	return bytes.ReplaceAll(line, []byte("##["), []byte(`##\u005b`))
}

// eventLine returns the line of an event, after the name of an agent that another agent started.
func (w *Watch) eventLine(e transcript.Event) string {
	line := lineOf(e) + w.usageSuffix(e)
	if line == "" || e.Type == transcript.TypeAgentStarted {
		return line
	}
	return w.status().agentPrefix(e) + line
}

// usageSuffix returns what was used so far, for the end of the line of a request, of an agent's end and
// of the run's end.
func (w *Watch) usageSuffix(e transcript.Event) string {
	switch e.Type {
	case transcript.TypeModelRequest:
		if figures := w.status().usageOf(e); figures != "" {
			return "; so far " + figures
		}
	case transcript.TypeAgentFinished:
		if figures := w.status().usageOf(e); figures != "" {
			return "; used " + figures
		}
	case transcript.TypeRunFinished:
		return w.status().total()
	}
	return ""
}

// lineOf describes an event in one line; empty for hidden events.
func lineOf(e transcript.Event) string {
	description, err := timeline.Describe(e)
	if err != nil || description.Detail {
		return ""
	}
	line := description.Line.String()
	if description.Message != "" {
		line += ": " + description.Message
	}
	if description.PartOfNeighbours {
		line = "  " + line
	}
	return Printable(line)
}

// Printable returns hostile text as one visible line that cannot control a terminal or log. Line ends and tabs
// become blanks. It shows other control characters as pictures, and format characters by their number.
func Printable(text string) string {
	line := strings.Map(func(c rune) rune {
		if c == '\n' || c == '\r' || c == '\t' {
			return ' '
		}
		return c
	}, text)
	return markdown.Show(strings.ReplaceAll(line, "\x1b", "\u241b"))
}

// durations match what differs between two runs of a command that fails in the same way.
var durations = lazyregexp.New(`\b[0-9]+(?:\.[0-9]+)? ?(?:[nuµm]?s|sec|seconds?)\b`)

// seenBefore reports whether the last output of that name was the same except for durations.
func (w *Watch) seenBefore(o timeline.Output) bool {
	masked := durations().ReplaceAllString(o.Tail, "0 s")
	before, known := w.outputs[o.Name]
	if w.outputs == nil {
		w.outputs = map[string]string{}
	}
	w.outputs[o.Name] = masked
	return known && before == masked
}

// showOutput shows an output below the line of its event, in a step as a folded group. It only names one that
// was shown before.
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
