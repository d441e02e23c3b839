package markdown

import (
	"strings"

	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
)

// The most that is shown of one line, and in one block of code, in UTF-16 units and lines.
const (
	lineUnits  = 2000
	fenceUnits = 2 * lineUnits
	fenceLines = 60
)

// Prose is a message as rows of Markdown, each of whole lines, that can be shown up to any of them. A long
// line and a long block of code are cut.
func Prose(s string) []string {
	lines := strings.Split(Clean(s), "\n")
	for i := range lines {
		lines[i] = Cut(lines[i], lineUnits)
	}
	all := Parse(strings.Join(lines, "\n"))
	for i, b := range all {
		if len(b.Code) > fenceLines {
			all[i].Code = append(b.Code[:fenceLines-1:fenceLines-1], "…")
		}
	}
	return rows(all, false)
}

// Whole is Prose that leaves nothing out: a long line, or block of code, continues in another one.
func Whole(s string) []string {
	return rows(Parse(strings.Join(wrapped(strings.Split(Clean(s), "\n")), "\n")), false)
}

// guidance is what a template says to the person who fills it in; no page shows it.
var guidance = lazily(`(?s)<!--.*?(?:-->|$)`)

// Template is a template of a pull request as rows of Markdown. Headings stay headings and boxes stay boxes,
// all of them open. HTML comments are left out.
func Template(s string) []string {
	return rows(parse(guidance().ReplaceAllString(Clean(s), ""), true), true)
}

func rows(all []Block, form bool) (rows []string) {
	last := CodeBlock
	for _, b := range all {
		for _, row := range b.rows(form) {
			if len(rows) > 0 && (b.Gap || b.Kind != last && b.Kind != ItemLine && (b.Kind != Item || last != ItemLine) || b.Kind == Heading || b.Kind == CodeBlock) {
				row = "\n" + row
			}
			rows, last = append(rows, row), b.Kind
		}
	}
	return rows
}

func (b Block) rows(form bool) (rows []string) {
	text, indent := Line(b.Text), strings.Repeat("    ", b.Level)
	switch b.Kind {
	case CodeBlock:
		for n, code := 0, b.Code; len(code) > 0; code = code[n:] {
			n = fitting(code)
			rows = append(rows, Fence(strings.Join(code[:n], "\n")))
		}
		return rows
	case Heading:
		switch {
		case text == "":
			return nil
		case form:
			text = strings.Repeat("#", b.Level) + " " + text
		default:
			text = Line(bold(b.Text))
		}
	case Item:
		box := ""
		if b.Box {
			box = "[ ] "
		}
		text = indent + b.Mark + " " + box + text
	case ItemLine:
		text = indent + "  " + text
	}
	return []string{text + "\n"}
}

// bold is a text whose plain parts are bold.
func bold(t document.Text) document.Text {
	for i := range t {
		if t[i].Style == document.Plain {
			t[i].Style = document.Strong
		}
	}
	return t
}

// wrapped are lines of which none is longer than lineUnits. A long one continues in the next, after a blank
// where there is one.
func wrapped(lines []string) (all []string) {
	for _, line := range lines {
		for Units(line) > lineUnits {
			end := len(strings.TrimSuffix(Cut(line, lineUnits), "…"))
			if blank := strings.LastIndexByte(line[:end], ' '); strings.TrimSpace(line[:max(blank, 0)]) != "" {
				end = blank + 1
			}
			all, line = append(all, line[:end]), line[end:]
		}
		all = append(all, line)
	}
	return all
}

// fitting is how many lines of code are shown in one block, at least one.
func fitting(code []string) (n int) {
	for units := 0; n < min(len(code), fenceLines); n++ {
		if units += Units(code[n]) + 1; n > 0 && units > fenceUnits {
			break
		}
	}
	return n
}
