package body

import (
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/tools/dialect"
)

// shownEntries returns the messages and calls that a mode shows, in order.
func shownEntries(v *transcript.View, mode Mode) []transcript.Entry {
	if mode == none {
		return nil
	}
	repeated := summaryEntry(v)
	var all []transcript.Entry
	for i, e := range v.Entries {
		if i != repeated && (mode != digest || e.Call != nil) {
			all = append(all, e)
		}
	}
	return groupByScript(all)
}

// isPlan reports whether a call writes the plan, which has a section of its own.
func isPlan(e transcript.Entry) bool { return e.Call != nil && dialect.Is(e.Call.Tool, dialect.Plans) }

// countPlanCalls returns the number of calls that write the plan.
func countPlanCalls(v *transcript.View) (n int) {
	for _, e := range v.Entries {
		if isPlan(e) {
			n++
		}
	}
	return n
}

// groupByScript moves the calls of a script after the script's own call.
func groupByScript(all []transcript.Entry) []transcript.Entry {
	callsOf := map[*transcript.Call][]transcript.Entry{}
	for _, e := range all {
		if e.Call != nil && e.Call.Script != nil {
			callsOf[e.Call.Script] = append(callsOf[e.Call.Script], e)
		}
	}
	sorted := make([]transcript.Entry, 0, len(all))
	for _, e := range all {
		if e.Call == nil || e.Call.Script == nil {
			sorted = append(append(sorted, e), callsOf[e.Call]...)
		}
	}
	return sorted
}

// summaryEntry returns the index of the message that the summary repeats, or -1.
func summaryEntry(v *transcript.View) int {
	if v.Summary() != v.LastMessage {
		return -1
	}
	for i, e := range slices.Backward(v.Entries) {
		if e.Call == nil && e.Agent == transcript.MainAgent {
			return i
		}
	}
	return -1
}

// entryText returns the Markdown of a message or call.
func entryText(e transcript.Entry, mode Mode) string {
	switch {
	case e.Call == nil:
		return messageBlock(e)
	case mode == digest && e.Call.Script != nil:
		return "  " + listItem(document.Item{Text: callTitle(e.Call)})
	case mode == digest:
		return listItem(document.Item{Text: callTitle(e.Call)})
	case e.Call.Script != nil:
		return "\n<blockquote>\n" + callFold(e.Call) + "</blockquote>\n"
	}
	return "\n" + callFold(e.Call)
}

// omittedMark returns a line for calls that are left out.
func omittedMark(calls int, mode Mode) string {
	words := "… " + transcript.CountNoun(calls, "call") + " not shown …\n"
	if mode == digest {
		return "- " + words
	}
	return "\n" + words
}

// messageBlock returns the agent's words as a quote.
func messageBlock(e transcript.Entry) string {
	var b strings.Builder
	b.WriteString("\n")
	if e.Agent != transcript.MainAgent {
		b.WriteString("> " + markdown.Text(markdown.Cut(e.Name, fieldWidth)) + ":\n>\n")
	}
	said := strings.Join(markdown.Prose(e.Message), "")
	for line := range strings.Lines(said) {
		b.WriteString(strings.TrimRight("> "+line, " \n") + "\n")
	}
	return b.String()
}

// callTitle returns a line with a call and how it ended.
func callTitle(c *transcript.Call) document.Text {
	return document.Join(" ", document.Text{{Text: c.Tool, Style: document.Strong}}, document.Mono(c.Topic), document.Words("· "+callEnd(c)))
}

// callFold returns a call. Its title is visible; arguments and output are folded.
func callFold(c *transcript.Call) string {
	inputTitle := "Arguments"
	if transcript.IsScript(c.Tool) {
		inputTitle = "Script"
	}
	blocks := titledBlocks(inputTitle, c.Input)
	if c.Finished {
		blocks = append(blocks, titledBlocks("Output", c.Output)...)
	}
	if c.OutputFile != "" {
		blocks = append(blocks, document.Paragraph{Text: document.Format("The whole output, %s bytes, is `%s` in the run directory.", transcript.GroupThousands(c.OutputBytes), c.OutputFile)})
	}
	return new(page).foldText(document.Fold{Title: callTitle(c), Blocks: blocks})
}

// titledBlocks returns a text below a title.
func titledBlocks(title, text string) []document.Block {
	if text == "" {
		return []document.Block{document.Paragraph{Text: document.Words(title + ": none")}}
	}
	return []document.Block{document.Paragraph{Text: document.Words(title + ":")}, document.Code(text)}
}

// callEnd returns how a call ended and how long it took.
func callEnd(c *transcript.Call) string {
	if !c.Finished {
		return "did not end"
	}
	return c.Result + " · " + transcript.FormatSeconds(c.Seconds)
}
