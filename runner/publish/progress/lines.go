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

// Watch shows the events of a run: as lines of JSON, as text for a person, as groups of a step's log, and in
// a comment. A nil field disables that output.
type Watch struct {
	Events         io.Writer // receives each event as a line of JSON
	Lines          io.Writer // receives lines for a person
	Terminal       *Terminal // terminal that Lines writes to; nil if it is no terminal
	Step           *actions.Step
	NoRunDirectory bool // the run leaves no directory, so its id is not shown

	mu          sync.Mutex // guards the fields below, and Lines
	current     status
	mayDraw     bool                    // the status line may be drawn
	isDrawn     bool                    // the status line is on the terminal
	written     time.Time               // time of the last line
	group       string                  // title of the current group of the log
	groupOpen   bool                    // the group has a line, so its start is written
	lastOutputs map[string]string       // last output of each failed command, with durations masked
	comment     atomic.Pointer[comment] // the progress comment; nil for none
}

// Show is a record.Show. The record calls it for each event of the transcript.
func (w *Watch) Show(v *transcript.View, e transcript.Event) {
	w.writeJSON(e)
	w.showEvent(v, e)
	if c := w.comment.Load(); c != nil { // last, since it may wait for a server
		c.applyEvent(e, v)
	}
}

// writeJSON writes an event as a line of JSON. After an error it writes no more events.
func (w *Watch) writeJSON(e transcript.Event) {
	if w.Events == nil {
		return
	}
	line, err := e.Line()
	if err == nil {
		_, err = w.Events.Write(append(w.harmlessJSON(line), '\n'))
	}
	if err != nil {
		w.Events = nil // the reader is gone
	}
}

// showEvent updates the status and writes an event's lines: the event, the output of failed commands, and the
// verdict at the run's end.
func (w *Watch) showEvent(v *transcript.View, e transcript.Event) {
	description := timeline.Describe(e)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.current.applyEvent(v, e, time.Now())
	group := string(w.current.currentPhase())
	if e.Type == transcript.TypeRunFinished {
		group = "" // the run's end belongs to no group
	}
	w.beginGroup(group)
	if w.Events != nil { // events go to the same log, which then needs an open group
		w.openGroup()
	}
	if !(w.NoRunDirectory && e.Type == transcript.TypeRunStarted) {
		if line := eventLine(v, e, description); line != "" {
			w.addToGroup("agent-ci: " + line + "\n")
		}
	}
	for _, each := range description.Outputs {
		w.showOutput(each)
	}
	if tone, verdict := sections.Verdict(v, sections.NoDoubt); e.Type == transcript.TypeRunFinished && len(verdict) > 0 {
		w.addToGroup("agent-ci: " + document.Signs[tone] + Printable(verdict.String()) + "\n")
	}
	w.draw()
}

// harmlessJSON escapes the bracket of "##[", with which an old workflow command begins. In JSON the escape
// means the same.
func (w *Watch) harmlessJSON(line []byte) []byte {
	if w.Step == nil {
		return line
	}
	return bytes.ReplaceAll(line, []byte("##["), []byte(`##\u005b`))
}

// eventLine returns the line for an event, or "". The lines of subagents begin with their names, but for the line that
// reports their start: it names them itself.
func eventLine(v *transcript.View, e transcript.Event, description timeline.Entry) string {
	line := lineOf(description) + usageSuffix(v, e)
	if line == "" || e.Type == transcript.TypeAgentStarted {
		return line
	}
	return agentPrefix(v, e) + line
}

// usageStarts has the beginning of the usage in the lines of events.
var usageStarts = map[transcript.Type]string{transcript.TypeModelRequest: "; so far ", transcript.TypeAgentFinished: "; used "}

// usageSuffix returns the usage so far, as the end of the line of a request, an agent's end or the run's end. It
// returns "" for other events, and if the usage is unknown.
func usageSuffix(v *transcript.View, e transcript.Event) string {
	if e.Type == transcript.TypeRunFinished {
		return totalUsage(v)
	}
	start, shown := usageStarts[e.Type]
	if !shown {
		return ""
	}
	figures := usageOf(v, e)
	if figures == "" {
		return ""
	}
	return start + figures
}

// lineOf returns the line for a described event, or "" for an event that is not shown.
func lineOf(description timeline.Entry) string {
	if description.Detail {
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

// Printable returns untrusted text as one line that cannot control a terminal or log. Line ends and tabs
// become spaces. Other control characters become symbols, and format characters their numbers.
func Printable(text string) string {
	line := strings.Map(func(c rune) rune {
		if c == '\n' || c == '\r' || c == '\t' {
			return ' '
		}
		return c
	}, text)
	return markdown.Show(strings.ReplaceAll(line, "\x1b", "\u241b"))
}

// durations matches durations in output, which differ each time a command fails.
var durations = lazyregexp.New(`\b[0-9]+(?:\.[0-9]+)? ?(?:[nuµm]?s|sec|seconds?)\b`)

// isRepeated reports whether the last output of the same name was equal, apart from durations. It remembers
// this output as the last one.
func (w *Watch) isRepeated(o timeline.Output) bool {
	masked := durations().ReplaceAllString(o.Tail, "0 s")
	before, known := w.lastOutputs[o.Name]
	if w.lastOutputs == nil {
		w.lastOutputs = map[string]string{}
	}
	w.lastOutputs[o.Name] = masked
	return known && before == masked
}

// showOutput shows the output of a failed command below the line of its event. In GitHub Actions it is a
// folded group. Output that repeats is only mentioned.
func (w *Watch) showOutput(o timeline.Output) {
	var text strings.Builder
	title := Printable(o.Title())
	if w.isRepeated(o) {
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
