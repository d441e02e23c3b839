package markdown

import "strings"

// lineUnits is the most that Prose shows of one line.
const lineUnits = 2000

// fenceLines is the most that Prose shows of one block of code, and fenceUnits the most
// that one of Whole has.
const (
	fenceLines = 60
	fenceUnits = 2 * lineUnits
)

// Prose is a message as blocks of Markdown, each ending in a newline, that can
// be shown up to any of them. Lists, code, bold text and headings (as bold
// lines) are kept in our own hand; everything else is text.
func Prose(s string) []string {
	return (&prose{}).of(Clean(s))
}

// Whole is Prose that leaves nothing away: a long line, or block of code, goes on in
// another one.
func Whole(s string) []string {
	return (&prose{whole: true}).of(Clean(s))
}

// guidance is what a template tells who fills it in, and no page shows.
var guidance = lazily(`(?s)<!--.*?(?:-->|$)`)

// Template is a template of a pull request as blocks of Markdown. It is read as
// Prose, except that headings stay headings and boxes to tick stay boxes, none of
// them ticked. HTML comments are left out.
func Template(s string) []string {
	return (&prose{form: true}).of(guidance().ReplaceAllString(Clean(s), ""))
}

func (p *prose) of(s string) []string {
	p.rest = strings.Split(strings.Trim(s, "\n"), "\n")
	if p.whole {
		p.rest = wrapped(p.rest)
	}
	for len(p.rest) > 0 {
		p.next()
	}
	return p.blocks
}

type prose struct {
	form   bool // headings and boxes stay
	whole  bool // nothing is left away
	rest   []string
	blocks []string
	last   kind
	depth  int  // of the last list item
	gap    bool // an empty line came after the last block
}

type kind int

const (
	paragraph kind = iota
	item
	other // stands apart from whatever is next to it
)

var (
	fenceLine   = lazily("^[ \t]*(```+|~~~+)([^`]*)$")
	itemLine    = lazily(`^([ \t]*)([-*+]|[0-9]{1,2}[.)])[ \t]+(\S.*)$`)
	headingLine = lazily(`^ {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*$`)
	boxLine     = lazily(`^\[[ xX]\][ \t]+(\S.*)$`)
)

func (p *prose) next() {
	line := Cut(p.rest[0], lineUnits)
	if m := fenceLine().FindStringSubmatch(line); m != nil {
		p.fence(m[1])
		return
	}
	p.rest = p.rest[1:]
	switch {
	case strings.TrimSpace(line) == "":
		p.gap = true
	case headingLine().MatchString(line):
		p.heading(headingLine().FindStringSubmatch(line))
	case itemLine().MatchString(line):
		p.item(itemLine().FindStringSubmatch(line))
	case p.last == item && !p.gap:
		p.put(item, strings.Repeat("    ", p.depth)+"  "+inline(line)+"\n")
	default:
		p.put(paragraph, inline(line)+"\n")
	}
}

// put adds a block, after an empty line where it does not go on with the last.
func (p *prose) put(k kind, block string) {
	if len(p.blocks) > 0 && (k != p.last || k == other || p.gap) {
		block = "\n" + block
	}
	p.blocks = append(p.blocks, block)
	p.last, p.gap = k, false
}

func (p *prose) heading(m []string) {
	text := Text(m[2])
	switch {
	case text == "":
	case p.form:
		p.put(other, m[1]+" "+text+"\n")
	default:
		p.put(other, "**"+text+"**\n")
	}
}

// item writes a list item, at most one level deeper than the one before: what
// is indented further would be code.
func (p *prose) item(m []string) {
	depth := 0
	if p.last == item {
		indentation := len(m[1]) + 3*strings.Count(m[1], "\t")
		depth = min(indentation/2, p.depth+1, 3)
	}
	mark := "-"
	if isDigit(m[2][0]) {
		mark = strings.TrimRight(m[2], ".)") + "."
	}
	p.put(item, strings.Repeat("    ", depth)+mark+" "+p.box(m[3])+"\n")
	p.depth = depth
}

// box is the text of a list item, with a box before it where it had one that
// stays.
func (p *prose) box(text string) string {
	if m := boxLine().FindStringSubmatch(text); m != nil && p.form {
		return "[ ] " + inline(m[1])
	}
	return inline(text)
}

// fence takes the lines up to the end of a block of code that opened with mark.
func (p *prose) fence(mark string) {
	end := 1
	for end < len(p.rest) && !closesFence(p.rest[end], mark) {
		end++
	}
	code := p.rest[1:end]
	p.rest = p.rest[min(end+1, len(p.rest)):]
	if p.whole {
		for n := 0; len(code) > 0; code = code[n:] {
			n = fitting(code)
			p.put(other, Fence(strings.Join(code[:n], "\n"), ""))
		}
		return
	}
	if len(code) > fenceLines {
		code = append(code[:fenceLines:fenceLines], "…")
	}
	for i := range code {
		code[i] = Cut(code[i], lineUnits)
	}
	p.put(other, Fence(strings.Join(code, "\n"), ""))
}

func closesFence(line, mark string) bool {
	line = strings.TrimSpace(line)
	return len(line) >= len(mark) && strings.Trim(line, mark[:1]) == ""
}

// wrapped are lines of which none is longer than lineUnits. A long one goes on in the
// next, behind a blank where there is one.
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
