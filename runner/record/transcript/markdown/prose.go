package markdown

import (
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
)

// Limits of a line, in UTF-16 units, and of a code block, in units and lines.
const (
	lineUnits  = 2000
	fenceUnits = 2 * lineUnits
	fenceLines = 60
)

// Prose returns a message as rows of Markdown. Each row has whole lines, so any number of rows can
// be shown. It cuts long lines and long code blocks.
func Prose(s string) []string {
	lines := strings.Split(visibleText(s), "\n")
	for i := range lines {
		lines[i] = Cut(lines[i], lineUnits)
	}
	all := Parse(strings.Join(lines, "\n"))
	for i, b := range all {
		if len(b.code) > fenceLines {
			all[i].code = append(slices.Clip(b.code[:fenceLines-1]), "…")
		}
	}
	return rows(all, Block.rows)
}

// Whole is like Prose, but cuts nothing. A long line continues on another line, a long code block in another
// block.
func Whole(s string) []string {
	return rows(Parse(strings.Join(wrapLines(strings.Split(visibleText(s), "\n")), "\n")), Block.rows)
}

// htmlComment matches a template's comments to authors.
var htmlComment = lazyregexp.New(`(?s)<!--.*?(?:-->|$)`)

// Template returns a template of a pull request as rows of Markdown. Headings and boxes stay, but no box is
// ticked. HTML comments are left out.
func Template(s string) []string {
	return rows(parse(htmlComment().ReplaceAllString(visibleText(s), ""), parseTemplateItem), Block.templateRows)
}

// rows returns the rows of blocks, as rowsOf makes them of each, with an empty line where Markdown needs one.
func rows(all []Block, rowsOf func(Block) []string) (rows []string) {
	last := CodeBlock
	for _, b := range all {
		for _, row := range rowsOf(b) {
			if len(rows) > 0 && b.needsGapAfter(last) {
				row = "\n" + row
			}
			rows, last = append(rows, row), b.Kind
		}
	}
	return rows
}

// needsGapAfter reports whether Markdown needs an empty line between a block of kind last and b.
func (b Block) needsGapAfter(last Kind) bool {
	switch {
	case b.Gap || b.Kind == Heading || b.Kind == CodeBlock:
		return true
	case b.Kind == ItemLine || b.Kind == Item && last == ItemLine:
		return false
	}
	return b.Kind != last
}

// rows returns the Markdown of a block, one row for each line of text. Long code becomes several
// fences. A heading becomes bold text.
func (b Block) rows() (rows []string) {
	text, indent := Line(b.Text), strings.Repeat("    ", b.Level)
	switch b.Kind {
	case CodeBlock:
		rest := b.code
		for len(rest) > 0 {
			n := linesInFence(rest)
			rows = append(rows, Fence(strings.Join(rest[:n], "\n")))
			rest = rest[n:]
		}
		return rows
	case Heading:
		if text == "" {
			return nil
		}
		text = Line(makeBold(b.Text))
	case Item:
		box := ""
		if b.box {
			box = "[ ] "
		}
		text = indent + b.Mark + " " + box + text
	case ItemLine:
		text = indent + "  " + text
	}
	return []string{text + "\n"}
}

// templateRows is like rows, but a heading stays a heading.
func (b Block) templateRows() []string {
	text := Line(b.Text)
	if b.Kind != Heading || text == "" {
		return b.rows()
	}
	return []string{strings.Repeat("#", b.Level) + " " + text + "\n"}
}

// makeBold makes the plain spans of a text bold, in place, and returns the text.
func makeBold(t document.Text) document.Text {
	for i := range t {
		if t[i].Style == document.Plain {
			t[i].Style = document.Strong
		}
	}
	return t
}

// wrapLines breaks lines longer than lineUnits, after a blank if possible.
func wrapLines(lines []string) (all []string) {
	for _, line := range lines {
		for Units(line) > lineUnits {
			end := len(strings.TrimSuffix(Cut(line, lineUnits), "…"))
			lastBlank := strings.LastIndexByte(line[:end], ' ')
			if hasTextBefore := strings.TrimSpace(line[:max(lastBlank, 0)]) != ""; hasTextBefore {
				end = lastBlank + 1
			}
			all, line = append(all, line[:end]), line[end:]
		}
		all = append(all, line)
	}
	return all
}

// linesInFence returns how many lines of code one fence shows, at least one.
func linesInFence(code []string) (n int) {
	units := 0
	for n < min(len(code), fenceLines) {
		units += Units(code[n]) + 1
		if n > 0 && units > fenceUnits {
			break
		}
		n++
	}
	return n
}
