// Package timeline owns the wording of events: one line for each, and the texts behind it. A terminal shows
// the lines, the report lines and texts. Its texts are raw, also those of strangers: who draws them escapes
// them. It refuses to know terminals and pages.
package timeline

import (
	"encoding/json"
	"fmt"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
)

// entry describes an event.
type entry struct {
	Line             document.Text // one sentence; empty for nothing
	Message          string        // ends the line where there is no Markdown, else stands below it
	Texts            []Text        // more of it; nil for the data of the event
	Outputs          []Output      // of commands that failed
	Detail           bool          // shown only where all events are
	PartOfNeighbours bool          // explained by the lines around it
	Bad              bool
	Seconds          float64
	Host             string // that the event is about
	Refused          string // the rule by which the host was refused
}

// Text is a longer text of an event.
type Text struct{ Title, Text string }

// Output is the end of a failed command's output.
type Output struct{ Name, end, Tail string }

// Title names the command.
func (o Output) Title() string { return "The last lines of " + o.Name + " (" + o.end + ")" }

// Describe describes an event. An unknown type yields its name only.
func Describe(e transcript.Event) (entry, error) {
	if describe, known := table[e.Type]; known {
		return describe(e.Data)
	}
	return detailEntry(string(e.Type)), nil
}

// withoutTexts marks events described by their line or other parts of a page.
var withoutTexts = []Text{}

// decodeAs reads the data of one type of event.
func decodeAs[T any](describe func(T) entry) func(json.RawMessage) (entry, error) {
	return func(raw json.RawMessage) (entry, error) {
		var data T
		if err := json.Unmarshal(raw, &data); err != nil {
			return entry{}, err
		}
		return describe(data), nil
	}
}

// outputs is the output of a command, if it left some.
func outputs(name, end, tail string) []Output {
	if tail == "" {
		return nil
	}
	return []Output{{name, end, tail}}
}

// line returns a sentence with strong first words.
func line(begin string, rest ...string) document.Text {
	text := document.Text{{Text: begin, Style: document.Strong}}
	for _, each := range rest {
		if each != "" {
			text = append(text, document.Span{Text: each})
		}
	}
	return text
}

func detailEntry(begin string, rest ...string) entry {
	return entry{Line: line(begin, rest...), Detail: true}
}

// prefixed adds a prefix to a non-empty text.
func prefixed(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

// inBrackets encloses a non-empty text.
func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

func seconds(s float64) string { return fmt.Sprintf("%.1f s", s) }
