// Package timeline owns the words for events: a line for each event, and longer texts. A terminal
// shows the lines, the report both. The texts are raw and may be hostile; callers escape them. The
// package does not know terminals and pages.
package timeline

import (
	"fmt"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
	"github.com/agent-ci/agent-ci/runner/record/transcript/sections"
)

// Entry describes an event in words.
type Entry struct {
	Line             document.Text // one sentence; may be empty
	Message          string        // Markdown: below the line, or at its end where Markdown can't be shown
	Texts            []LongText    // longer texts; nil means the data of the event
	Outputs          []Output      // the outputs of failed commands
	Detail           bool          // only shown if all events are shown
	PartOfNeighbours bool          // the lines around it explain it
	Bad              bool
	Seconds          float64
	Host             string // the host that the event is about
	RefusedBy        string // the rule that refused the host
}

// add adds a part to the line.
func (e *Entry) add(text string) { e.Line = append(e.Line, document.Span{Text: text}) }

// LongText is a longer text about an event.
type LongText struct{ Title, Text string }

// Output is the end of a failed command's output.
type Output struct{ Name, result, Tail string }

// Title returns a title for the output, with the command's name.
func (o Output) Title() string { return sections.OutputTitle(o.Name, o.result).String() }

// line returns an entry whose line follows a template.
func line(template string, arguments ...any) Entry {
	return Entry{Line: document.Format(template, arguments...)}
}

// neighbour returns an entry that the lines around it explain.
func neighbour(template string, arguments ...any) Entry {
	e := line(template, arguments...)
	e.PartOfNeighbours = true
	return e
}

// detail returns an entry that is only shown with all events.
func detail(template string, arguments ...any) Entry {
	e := line(template, arguments...)
	e.Detail = true
	return e
}

// bad returns the entry, marked as bad.
func (e Entry) bad() Entry { return e.badIf(true) }

// badIf returns the entry, marked as bad on a condition.
func (e Entry) badIf(condition bool) Entry {
	e.Bad = condition
	return e
}

// withTexts returns the entry with these texts in place of the event's data.
func (e Entry) withTexts(texts ...LongText) Entry {
	e.Texts = append([]LongText{}, texts...)
	return e
}

// withSections returns the entry with the texts of the sections that a place shows of a change.
func (e Entry) withSections(change transcript.ChangeState, place sections.Pages) Entry {
	for _, s := range (&sections.Source{View: &transcript.View{ChangeState: change}}).ForPages(place) {
		e.Texts = append(e.Texts, LongText{s.Title, document.PlainText(s.Blocks...)})
	}
	return e
}

// addOutput adds the last lines of a command's output, unless they are empty.
func (e *Entry) addOutput(name, result, tail string) {
	if tail != "" {
		e.Outputs = append(e.Outputs, Output{name, result, tail})
	}
}

// withPrefix returns text with a prefix, or "" if text is empty.
func withPrefix(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// inBrackets returns text in brackets after a blank, or "" if text is empty.
func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

func formatSeconds(s float64) string { return fmt.Sprintf("%.1f s", s) }
