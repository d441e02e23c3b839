package editformat

import (
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/v4a"
)

// marker describes a marker line of a SEARCH/REPLACE block: its number of marker characters and its
// indentation. The zero marker means none.
type marker struct{ size, indent int }

// readMarker parses a marker line: 5 to 9 times char, followed by one of words. It returns the zero
// marker for any other line.
func readMarker(line string, char byte, words ...string) marker {
	indent := strings.IndexByte(line, char)
	if indent < 0 {
		return marker{}
	}
	text := strings.TrimSpace(line)
	rest := strings.TrimLeft(text, string(char))
	size := len(text) - len(rest)
	if size < 5 || size > 9 || !slices.Contains(words, rest) {
		return marker{}
	}
	return marker{size, indent}
}

func searchMarker(line string) marker  { return readMarker(line, '<', " SEARCH", " SEARCH>") }
func dividerMarker(line string) marker { return readMarker(line, '=', "") }
func replaceMarker(line string) marker { return readMarker(line, '>', " REPLACE") }

// beginsBlock reports whether a line begins a SEARCH/REPLACE block, in a format that has such blocks.
func (p *parser) beginsBlock(line int) bool {
	return p.format == Diff && searchMarker(p.lines[line]).size > 0
}

// isCode reports whether Markdown treats a line as code because of its indentation.
func isCode(line string) bool {
	return strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t")
}

// holdsBlocks reports whether a fence begins with a SEARCH/REPLACE block, possibly after a path. A
// block in a fence of plain text is an example, unless its path is inside the fence, or the path
// above is a text file.
func (p *parser) holdsBlocks(f fence) bool {
	named := false
	for i := p.at + 1; i < min(p.at+5, len(p.lines)); i++ {
		switch {
		case p.beginsBlock(i):
			return named || !f.isText() || p.isOfTextFile(i)
		case pathIn(p.lines[i]) != "":
			named = true
		case strings.TrimSpace(p.lines[i]) != "":
			return false
		}
	}
	return false
}

// isOfTextFile reports whether the path above the current fence is that of a text file. If it is another path, the
// block at line is passed, and isOfTextFile records why.
func (p *parser) isOfTextFile(line int) bool {
	above := p.pathAbove(p.at)
	if above != "" && !isProse(above) {
		p.skippedFence.line, p.skippedFence.why = line, "the block that begins there was not taken, since its fence is one of text; put it into a fence of code, or leave its path out where it is an example"
		return false
	}
	return above != ""
}

// readBlocks parses the blocks of a fence. If the fence is not closed, it drops them and reports a
// problem.
func (p *parser) readBlocks(f fence) {
	open, before, last := p.at, len(p.answer.Edits), p.last
	for p.at++; p.at < len(p.lines); {
		switch {
		case p.beginsBlock(p.at):
			p.readBlock()
		case f.closes(p.lines[p.at]):
			p.at++
			return
		default:
			p.at++
		}
	}
	p.answer.Edits, p.last = p.answer.Edits[:before], last
	p.reportUnclosed(open, f)
}

// readBlock parses the block at the current line. For an incomplete block, it reports a problem and
// skips the line.
func (p *parser) readBlock() {
	from, path := p.at, p.pathAbove(p.at)
	divider, end, problem := p.findBounds(from)
	if problem != "" {
		p.problem(from, "the SEARCH/REPLACE block that begins there %s", problem)
		p.at++
		return
	}
	p.addEdit(from, path, searchReplace(p.lines[from+1:divider], p.lines[divider+1:end]))
	p.at = end + 1
}

const longerMarkers = "lines that begin, divide or end a block stand in it more than once; write the markers of the block with 9 characters"

// findBounds finds the divider and the end of a block. Markers with the length and indentation of the
// first marker count. If there are no such markers, any marker counts. problem is not "" for an
// incomplete block, or for one with two different readings.
func (p *parser) findBounds(from int) (divider, end int, problem string) {
	head := searchMarker(p.lines[from])
	divider, end, problem = p.scanMarkers(from, func(m marker) bool { return m == head })
	looseDivider, looseEnd, looseProblem := p.scanMarkers(from, func(m marker) bool { return m.size > 0 })
	if problem != "" {
		return looseDivider, looseEnd, looseProblem
	}
	isSame := divider == looseDivider && end == looseEnd
	if looseProblem == "" && !isSame {
		return 0, 0, "is not clear: " + longerMarkers
	}
	return divider, end, ""
}

// scanMarkers finds the divider and the end of a block. counts decides which markers count. problem is "" for a
// complete block.
func (p *parser) scanMarkers(from int, counts func(marker) bool) (divider, end int, problem string) {
	dividers := 0
	for i := from + 1; i < len(p.lines); i++ {
		line := p.lines[i]
		switch {
		case counts(searchMarker(line)):
			return 0, 0, "is not whole: another one begins before its line >>>>>>> REPLACE"
		case counts(dividerMarker(line)):
			dividers++
			divider = i
		case !counts(replaceMarker(line)): // a line of the file
		case dividers == 0:
			return 0, 0, "is not whole: the line ======= is missing, between what is looked for and what takes its place"
		case dividers > 1:
			return 0, 0, "is not clear: " + longerMarkers
		default:
			return divider, i, ""
		}
	}
	return 0, 0, "is not whole: its line >>>>>>> REPLACE is missing"
}

// searchReplace returns the edit of a block. An empty SEARCH part creates a file.
func searchReplace(search, replace []string) Edit {
	if isBlank(search) {
		search = nil
	}
	return Edit{lines: alignLines(search, replace), pieces: splitAtOmissions(search, replace)}
}

func isBlank(lines []string) bool {
	return !slices.ContainsFunc(lines, func(line string) bool { return strings.TrimSpace(line) != "" })
}

// splitAtOmissions returns the parts between "..." lines, if both sides have the same number of such lines.
// Otherwise it returns nil.
func splitAtOmissions(search, replace []string) [][]v4a.Line {
	oldParts, newParts := splitAtDots(search), splitAtDots(replace)
	if len(oldParts) == 1 || len(oldParts) != len(newParts) {
		return nil
	}
	var pieces [][]v4a.Line
	for i := range oldParts {
		switch {
		case len(oldParts[i]) > 0 && !isBlank(oldParts[i]):
			pieces = append(pieces, alignLines(oldParts[i], newParts[i]))
		case !isBlank(newParts[i]): // without old lines, nothing says where the new lines belong
			return nil
		}
	}
	return pieces
}

// splitAtDots splits lines at lines that contain only "..." or "…".
func splitAtDots(lines []string) [][]string {
	all := [][]string{nil}
	for _, line := range lines {
		if text := strings.TrimSpace(line); text == "..." || text == "…" {
			all = append(all, nil)
			continue
		}
		last := len(all) - 1
		all[last] = append(all[last], line)
	}
	return all
}

// alignLines returns the kept, removed and inserted lines between two sides of a block.
func alignLines(old, replacement []string) []v4a.Line {
	return v4a.AlignTexts(joinLines(old), joinLines(replacement))
}

func joinLines(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}
