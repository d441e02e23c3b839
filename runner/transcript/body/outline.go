package body

import (
	"strings"

	"github.com/agent-ci/agent-ci/runner/transcript"
)

// Outline is what came of a run, as Markdown of at most limit UTF-16 code units:
// how it ended, what the agent said, plan, verification, files, warnings and
// usage, and nothing of its calls.
func Outline(v *transcript.View, limit int) string {
	p := &page{left: limit}
	for _, s := range append([]section{scripted(v), result(v), summary(v)}, append(account(v, nil), published(v.Publish))...) {
		p.section(s)
	}
	return strings.TrimLeft(p.String(), "\n")
}

// Checklist is a plan as Markdown, a step a line, with a mark for what is done:
// of at most limit UTF-16 code units.
func Checklist(p transcript.Plan, limit int) string {
	return List("", rowsOf(p.Steps, planStep), "step", limit)
}

// List is rows of whole lines below a head, as many as fit in limit UTF-16 code
// units. What is left out is counted below them, under the name of one.
func List(head string, rows []string, name string, limit int) string {
	p := &page{left: limit}
	p.section(section{head: head, rows: rows, more: name})
	return p.String()
}
