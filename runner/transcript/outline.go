package transcript

import (
	"strings"

	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// Outline is what came of a run, as Markdown of at most limit UTF-16 code units:
// how it ended, what the agent said, plan, verification, files, warnings and
// usage, and nothing of its calls.
func Outline(v *View, limit int) string {
	p := &page{left: limit}
	for _, s := range append([]section{scripted(v), result(v), summary(v)}, append(account(v, nil), published(v.Publish))...) {
		p.section(s)
	}
	return strings.TrimLeft(p.String(), "\n")
}

// Checklist is a plan as Markdown, a step a line, with a mark for what is done.
func Checklist(p Plan) string {
	var s strings.Builder
	for _, step := range p.Steps {
		s.WriteString(planStep(step))
	}
	return s.String()
}

// Plain is text of anybody as Markdown on one line that does nothing.
func Plain(s string) string { return markdown.Text(s) }
