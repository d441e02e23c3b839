package body

import (
	"cmp"
	"math"
	"strings"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/document"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/record/transcript/sections"
)

// Limits of a block that has none of its own, if space is short.
const (
	defaultMaxRows  = 50
	defaultMaxUnits = 6_000
)

// fieldWidth limits a field of the transcript, in UTF-16 units before escaping.
const fieldWidth = 300

// codeField returns a short field as a code span.
func codeField(s string) string { return markdown.Code(markdown.Cut(s, fieldWidth)) }

// Draw returns sections below a head, in up to limit UTF-16 code units.
func Draw(head string, all []document.Section, limit int) string {
	p := &page{remainingUnits: limit}
	p.addIfFits(head)
	p.addSections(all)
	return p.String()
}

// addSections adds sections while there is space.
func (p *page) addSections(all []document.Section) {
	for _, s := range all {
		head := "\n"
		if s.Title != "" {
			head = "\n## " + s.Title + "\n\n"
		}
		p.addBlocks(head, s.Blocks)
	}
}

// addBlocks adds blocks below a head. A paragraph is added together with the block after it.
func (p *page) addBlocks(head string, all []document.Block) {
	for i, b := range all {
		if paragraph, isParagraph := b.(document.Paragraph); isParagraph && i+1 < len(all) {
			head += markdown.Line(paragraph.Text) + "\n\n"
			continue
		}
		s := p.sectionOf(b)
		s.head = head + s.head
		if p.addSection(s) {
			head = "\n"
		}
	}
}

// sectionOf returns a block as rows, so that as many as fit can be shown.
func (p *page) sectionOf(b document.Block) section {
	switch b := b.(type) {
	case document.Paragraph:
		return section{rows: []string{markdown.Line(b.Text) + "\n"}}
	case document.Message:
		return p.withLimits(section{rows: markdown.Prose(b.Text)}, document.Limit{Noun: "paragraph", MaxRows: math.MaxInt, MaxUnits: b.MaxUnits})
	case document.Quote:
		return section{rows: []string{markdown.Fence(string(b))}}
	case document.Code:
		return section{rows: []string{markdown.Fence(string(b))}}
	case document.List:
		return p.withLimits(section{rows: rowsOf(b.Items, listItem)}, b.Limit)
	case document.Facts:
		return p.withLimits(section{rows: rowsOf(b, factItem)}, document.Limit{Noun: "fact"})
	case document.Table:
		head, rule := "|", "|"
		for _, column := range b.Columns {
			head += " " + column.Name + " |"
			if column.Number {
				rule += "--:|"
			} else {
				rule += "---|"
			}
		}
		return p.withLimits(section{head: head + "\n" + rule + "\n", rows: rowsOf(b.Rows, tableRow)}, b.Limit)
	case document.Folds:
		return p.withLimits(section{rows: rowsOf(b.Folds, p.foldText)}, b.Limit)
	case document.Alert:
		head := "> [!NOTE]\n"
		if b.Severe {
			head = "> [!WARNING]\n"
		}
		return p.withLimits(section{head: head, rows: rowsOf(b.Items, func(t document.Text) string { return "> - " + markdown.Line(t) + "\n" })}, b.Limit)
	}
	return section{}
}

// withLimits sets the limits of a section. A zero limit means the default. On an unlimited page, it only sets
// the noun.
func (p *page) withLimits(s section, l document.Limit) section {
	if p.unlimited {
		s.Noun = l.Noun
		return s
	}
	s.Limit = document.Limit{Noun: l.Noun, MaxRows: cmp.Or(l.MaxRows, defaultMaxRows), MaxUnits: cmp.Or(l.MaxUnits, defaultMaxUnits)}
	if p.maxBlockUnits > 0 {
		s.MaxUnits = min(s.MaxUnits, p.maxBlockUnits)
	}
	return s
}

// listItem returns an item as a line of Markdown, with a box if it is a step.
func listItem(i document.Item) string {
	mark, end := "- ", "\n"
	switch i.Box {
	case document.Done:
		mark = "- [x] "
	case document.InProgress:
		mark, end = "- [ ] ", " *(in progress)*\n"
	case document.Open:
		mark = "- [ ] "
	}
	return mark + markdown.Line(i.Text) + end
}

// factItem returns a fact as a line of Markdown.
func factItem(f document.Fact) string {
	if f.Name == "" {
		return "- " + markdown.Line(f.Value) + "\n"
	}
	return "- " + markdown.Text(f.Name) + ": " + markdown.Line(f.Value) + "\n"
}

// tableRow returns the cells of a row as a line of Markdown.
func tableRow(cells document.Row) string {
	row := "|"
	for _, cell := range cells {
		row += " " + markdown.Line(cell) + " |"
	}
	return row + "\n"
}

// foldText returns a fold as an HTML element whose title is always visible.
func (p *page) foldText(f document.Fold) string {
	inside := &page{remainingUnits: math.MaxInt, unlimited: p.unlimited}
	if f.MaxUnits > 0 && !p.unlimited {
		inside.remainingUnits = f.MaxUnits
	}
	inside.addBlocks("\n", f.Blocks)
	return "<details>\n<summary>" + markdown.HTMLLine(f.Title) + "</summary>\n" + inside.String() + "\n</details>\n"
}

// Verdict returns the verdict on a change as a line of Markdown, or "" without a change.
func Verdict(v *transcript.View, doubt sections.Doubt) string {
	tone, verdict := sections.Verdict(v, doubt)
	if len(verdict) == 0 {
		return ""
	}
	return markdown.Signs[tone] + markdown.Line(verdict) + "\n"
}

// Ending returns how a run ended, in words, and a sign for its tone. The sign may be "".
func Ending(outcome, reason string) (sign, words string) {
	tone, words := sections.DescribeEnding(outcome, reason)
	return markdown.Signs[tone], markdown.Text(words)
}

// Sentence returns a sentence of agent-ci as Markdown, with links to pull requests of a site.
func Sentence(site transcript.Site, s string) string {
	return markdown.Line(sections.Links{Site: site}.Sentence(s))
}

// Failures returns failing tests and the last lines of failed commands, folded, in up to limit
// UTF-16 units.
func Failures(v *transcript.View, limit int) string {
	p := &page{remainingUnits: limit, maxBlockUnits: limit * 2 / 3}
	p.addSections((&sections.Source{View: v}).ForPages(sections.Failures))
	return p.String()
}

// Document returns a run as one document without a limit: task, result, and all messages and calls,
// as far as the view has their text.
func Document(v *transcript.View) string {
	p := &page{remainingUnits: math.MaxInt, unlimited: true}
	p.addIfFits("# agent-ci run " + codeField(v.Started.RunID) + "\n")
	if verdict := Verdict(v, sections.NoDoubt); verdict != "" {
		p.addIfFits("\n" + verdict)
	}
	p.addSections(sourceOf(v, v.Site()).ForPages(sections.Document))
	var entries []block
	for _, e := range shownEntries(v, full) {
		entries = append(entries, entryBlock(e, full, 0)) // 0: the number of calls before a block only matters if blocks are left out
	}
	pages, _ := remainingSpace{units: p.remainingUnits}.paginate(entries)
	p.WriteString(pages[0]) // the only page, since the space is unlimited
	return p.String()
}

// Outline returns the result of a run without its calls, in up to limit UTF-16 units. Links lead to
// site; a zero site means the one in the transcript.
func Outline(v *transcript.View, site transcript.Site, limit int) string {
	return strings.TrimLeft(Draw("", sourceOf(v, cmp.Or(site, v.Site())).ForPages(sections.Summary), limit), "\n")
}

// sourceOf returns the source of sections for a document that says how the run ended, if it did.
func sourceOf(v *transcript.View, site transcript.Site) *sections.Source {
	return &sections.Source{View: v, Links: sections.LinksOf(v, site), EndKnown: true}
}

// Lessons returns the body of a pull request that has only the lessons l.
func Lessons(v *transcript.View, l transcript.Lessons, o Options) string {
	alone := *v
	alone.Lessons = &l
	return Draw(o.Head, o.source(&alone).ForPages(sections.Lessons), DefaultLimit)
}

// Checklist returns a plan as Markdown, a step a line, in up to limit UTF-16 code units.
func Checklist(p transcript.Plan, limit int) string {
	return List("", rowsOf(sections.Steps(p).Items, listItem), "step", limit)
}

// List returns rows below a head, in up to limit UTF-16 units, and how many rows are left out. Each
// row must consist of whole lines.
func List(head string, rows []string, name string, limit int) string {
	p := &page{remainingUnits: limit}
	p.addSection(section{head: head, rows: rows, Limit: document.Limit{Noun: name}})
	return p.String()
}
