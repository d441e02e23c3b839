package body

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
	"github.com/agent-ci/agent-ci/tools/dialect"
)

// shownEntries are the messages and calls that a mode shows, in their order.
func shownEntries(v *transcript.View, mode Mode) []transcript.Entry {
	if mode == None {
		return nil
	}
	repeated := summaryEntry(v)
	var all []transcript.Entry
	for i, e := range v.Entries {
		if i != repeated && (mode != Digest || e.Call != nil) {
			all = append(all, e)
		}
	}
	return underScripts(all)
}

// isPlan reports whether a call writes the plan, which has a section of its own.
func isPlan(e transcript.Entry) bool { return e.Call != nil && dialect.Is(e.Call.Tool, dialect.Plans) }

// withoutPlans leaves out the calls that wrote the plan.
func withoutPlans(all []transcript.Entry) []transcript.Entry { return slices.DeleteFunc(all, isPlan) }

// planCalls returns how many calls wrote the plan.
func planCalls(v *transcript.View) (n int) {
	for _, e := range v.Entries {
		if isPlan(e) {
			n++
		}
	}
	return n
}

// underScripts moves each call that a script made behind that script, in their order, even if the
// model had continued by then.
func underScripts(all []transcript.Entry) []transcript.Entry {
	made := map[*transcript.Call][]transcript.Entry{}
	for _, e := range all {
		if e.Call != nil && e.Call.By != nil {
			made[e.Call.By] = append(made[e.Call.By], e)
		}
	}
	sorted := make([]transcript.Entry, 0, len(all))
	for _, e := range all {
		if e.Call == nil || e.Call.By == nil {
			sorted = append(append(sorted, e), made[e.Call]...)
		}
	}
	return sorted
}

// summaryEntry is the index of the message that is shown as the summary, -1 if
// there is none.
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

func entryText(e transcript.Entry, mode Mode) string {
	switch {
	case e.Call == nil:
		return messageBlock(e)
	case mode == Digest:
		return callLine(e.Call)
	}
	return callBlock(e.Call)
}

// leftOut stands where calls are not shown.
func leftOut(calls int, mode Mode) string {
	words := "… " + transcript.Count(calls, "call") + " not shown …\n"
	if mode == Digest {
		return "- " + words
	}
	return "\n" + words
}

// messageBlock quotes what the agent said between two calls.
func messageBlock(e transcript.Entry) string {
	var b strings.Builder
	b.WriteString("\n")
	if e.Agent != transcript.MainAgent {
		b.WriteString("> " + text(e.Name) + ":\n>\n")
	}
	said := strings.Join(markdown.Prose(shown(e.Message)), "")
	for line := range strings.Lines(said) {
		b.WriteString(strings.TrimRight("> "+line, " \n") + "\n")
	}
	return b.String()
}

func callLine(c *transcript.Call) string {
	topic := ""
	if c.Topic != "" {
		topic = " " + code(c.Topic)
	}
	indent := ""
	if c.By != nil {
		indent = "  "
	}
	return indent + "- **" + text(c.Tool) + "**" + topic + " · " + callEnd(c) + "\n"
}

// callBlock is a call folded: one line that tells what it was, and inside its
// arguments and output.
func callBlock(c *transcript.Call) string {
	var b strings.Builder
	open, end := "\n<details>\n", "\n</details>\n"
	if c.By != nil {
		open, end = "\n<blockquote>\n<details>\n", "\n</details>\n</blockquote>\n"
	}
	b.WriteString(open + "<summary><b>" + htmlText(c.Tool) + "</b>")
	if c.Topic != "" {
		b.WriteString(" <code>" + htmlText(c.Topic) + "</code>")
	}
	b.WriteString(" · " + callEnd(c) + "</summary>\n")
	if transcript.IsScript(c.Tool) {
		writeExcerpt(&b, "Script", c.Input, "js")
	} else {
		writeExcerpt(&b, "Arguments", c.Input, "")
	}
	if c.Finished {
		writeExcerpt(&b, "Output", c.Output, "")
	}
	if c.File != "" {
		fmt.Fprintf(&b, "\nThe whole output, %s bytes, is %s in the run directory.\n", transcript.Thousands(c.Bytes), code(c.File))
	}
	b.WriteString(end)
	return b.String()
}

func htmlText(s string) string { return markdown.HTML(markdown.Cut(s, fieldWidth)) }

func writeExcerpt(b *strings.Builder, title string, e transcript.Excerpt, language string) {
	if e.Head == "" {
		fmt.Fprintf(b, "\n%s: none\n", title)
		return
	}
	fmt.Fprintf(b, "\n%s:\n\n%s", title, markdown.Fence(shown(e), language))
}

// shown is an excerpt with a line for the lines that it does not have.
func shown(e transcript.Excerpt) string {
	if e.Hidden == 0 {
		return e.Head
	}
	return fmt.Sprintf("%s\n… %s not shown …\n%s", e.Head, transcript.Count(e.Hidden, "line"), e.Tail)
}

// callEnd is how a call ended and how long it took.
func callEnd(c *transcript.Call) string {
	ended := "ok"
	switch {
	case !c.Finished:
		return "did not end"
	case c.ExitCode != nil && *c.ExitCode != 0:
		ended = fmt.Sprintf("exit %d", *c.ExitCode)
	case c.Failed:
		ended = "failed"
	}
	return ended + " · " + transcript.Duration(c.Seconds)
}
