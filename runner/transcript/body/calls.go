package body

import (
	"fmt"
	"iter"
	"strings"

	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// transcriptBlocks shows messages and calls in their order.
func transcriptBlocks(v *transcript.View, mode Mode) iter.Seq[block] {
	return func(yield func(block) bool) {
		if mode == None {
			return
		}
		repeated := summaryEntry(v)
		for i, e := range v.Entries {
			if i == repeated || mode == Digest && e.Call == nil {
				continue
			}
			if !yield(entryBlock(e, mode)) {
				return
			}
		}
	}
}

// summaryEntry is the index of the message that is shown as the summary, -1 if
// there is none.
func summaryEntry(v *transcript.View) int {
	if v.Summary() != v.LastMessage {
		return -1
	}
	for i := len(v.Entries) - 1; i >= 0; i-- {
		if e := v.Entries[i]; e.Call == nil && e.Agent == transcript.MainAgent {
			return i
		}
	}
	return -1
}

func entryBlock(e transcript.Entry, mode Mode) block {
	switch {
	case e.Call == nil:
		return block{text: func() string { return messageBlock(e) }}
	case mode == Digest:
		return block{text: func() string { return callLine(e.Call) }, calls: 1, changed: e.Call.Changed}
	}
	return block{text: func() string { return callBlock(e.Call) }, calls: 1, changed: e.Call.Changed}
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
		b.WriteString("> " + text(e.Agent) + ":\n>\n")
	}
	said := strings.Join(markdown.Prose(shown(e.Message)), "")
	for line := range strings.Lines(said) {
		b.WriteString(strings.TrimRight("> "+line, " \n") + "\n")
	}
	return b.String()
}

func callLine(c *transcript.Call) string {
	parts := []string{"- **" + text(c.Tool) + "**"}
	if c.Topic != "" {
		parts = append(parts, code(c.Topic))
	}
	return strings.Join(parts, " ") + " · " + callEnd(c) + "\n"
}

// callBlock is a call folded: one line that tells what it was, and inside its
// arguments and output.
func callBlock(c *transcript.Call) string {
	var b strings.Builder
	b.WriteString("\n<details>\n<summary><b>" + htmlText(c.Tool) + "</b>")
	if c.Topic != "" {
		b.WriteString(" <code>" + htmlText(c.Topic) + "</code>")
	}
	b.WriteString(" · " + callEnd(c) + "</summary>\n")
	writeExcerpt(&b, "Arguments", c.Input)
	if c.Finished {
		writeExcerpt(&b, "Output", c.Output)
	}
	if c.File != "" {
		fmt.Fprintf(&b, "\nThe whole output, %s bytes, is %s in the run directory.\n", transcript.Thousands(c.Bytes), code(c.File))
	}
	b.WriteString("\n</details>\n")
	return b.String()
}

func htmlText(s string) string { return markdown.HTML(markdown.Cut(s, fieldWidth)) }

func writeExcerpt(b *strings.Builder, title string, e transcript.Excerpt) {
	if e.Head == "" {
		fmt.Fprintf(b, "\n%s: none\n", title)
		return
	}
	fmt.Fprintf(b, "\n%s:\n\n%s", title, markdown.Fence(shown(e), ""))
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
	parts := []string{callOutcome(c)}
	if c.Finished {
		parts = append(parts, transcript.Duration(c.Seconds))
	}
	return strings.Join(parts, " · ")
}

func callOutcome(c *transcript.Call) string {
	switch {
	case !c.Finished:
		return "did not end"
	case c.ExitCode != nil && *c.ExitCode != 0:
		return fmt.Sprintf("exit %d", *c.ExitCode)
	case c.Failed:
		return "failed"
	}
	return "ok"
}
