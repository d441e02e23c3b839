package body

import (
	"strings"

	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// The body has the repository's template between these lines.
const (
	templateMark = "<!-- agent-ci: template -->"
	templateEnd  = "<!-- agent-ci: end of template -->"
)

// templateMaxUnits limits the template in a body, in UTF-16 units.
const templateMaxUnits = 8_000

// addTemplate adds the repository's template, if there is space for its marks.
func (p *page) addTemplate(template string) {
	rows := markdown.Template(template)
	end := "\n" + templateEnd + "\n"
	if len(rows) == 0 || p.remainingUnits < markdown.Units(end) {
		return
	}
	part := &page{remainingUnits: min(p.remainingUnits-markdown.Units(end), templateMaxUnits)}
	part.addSection(section{
		head: "\n" + templateMark + "\n*From this repository's template for pull requests. The boxes are for people: the run ticks none.*\n\n",
		rows: rows, Limit: document.Limit{Noun: "block"},
	})
	if part.Len() > 0 {
		p.addIfFits(part.String() + end)
	}
}

// KeepTicks ticks those boxes of the template that were ticked in an earlier body.
func KeepTicks(body, earlier string) string {
	earlier = strings.ReplaceAll(earlier, "\r\n", "\n") // GitHub's page uses "\r\n" in what was edited there
	from, to := templateIn(earlier)
	ticked := map[string]bool{}
	for line := range strings.Lines(earlier[from:to]) {
		if box, rest, found := strings.Cut(line, "[x] "); found && isItem(box) {
			ticked[box+"[ ] "+rest] = true
		}
	}
	if len(ticked) == 0 {
		return body
	}
	from, to = templateIn(body)
	var withTicks strings.Builder
	for line := range strings.Lines(body[from:to]) {
		if ticked[line] {
			line = strings.Replace(line, "[ ]", "[x]", 1)
		}
		withTicks.WriteString(line)
	}
	return body[:from] + withTicks.String() + body[to:]
}

// isItem reports whether s is the mark of a list item, before its box.
func isItem(s string) bool {
	mark := strings.Trim(s, " 0123456789")
	return mark == "-" || mark == "."
}

// templateIn returns the bounds of the template between its marks, or 0, 0 if the marks are missing. Other
// text never contains these marks.
func templateIn(body string) (from, to int) {
	mark := "\n" + templateMark + "\n"
	begin := strings.Index(body, mark)
	if begin < 0 {
		return 0, 0
	}
	from = begin + len(mark)
	length := strings.Index(body[from:], "\n"+templateEnd+"\n")
	if length < 0 {
		return 0, 0
	}
	return from, from + length + 1
}
