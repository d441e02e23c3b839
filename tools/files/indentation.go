package files

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

const (
	// tabWidth is the number of columns of a tab.
	tabWidth = 4
	// maxBlock is the maximum number of lines of a block. More would not fit on a page.
	maxBlock = maxPage / len("L1: \n")
)

// blockArguments are the arguments of the mode indentation.
type blockArguments struct {
	Anchor   *float64 `json:"anchor_line"`
	Levels   *float64 `json:"max_levels"`
	Siblings bool     `json:"include_siblings"`
	Header   *bool    `json:"include_header"`
	Lines    *float64 `json:"max_lines"`
}

// block describes the lines around an anchor line that belong together by their indentation, much like the reference
// implementation.
type block struct {
	anchor   int  // line number of the anchor
	levels   int  // number of levels with less indentation to include; 0 means all
	siblings bool // include neighbouring blocks with the same indentation
	header   bool // include comments directly above the block
	limit    int  // maximum number of lines
}

// block returns the block that a call asks for, or a refusal. offset and limit are the call's arguments.
func (a blockArguments) block(offset, limit int) (block, error) {
	b := block{
		anchor: toCount(a.Anchor, offset), levels: toCount(a.Levels, 0),
		siblings: a.Siblings, header: a.Header == nil || *a.Header,
		limit: min(limit, maxBlock, toCount(a.Lines, limit)),
	}
	switch {
	case b.anchor < 1:
		return b, refusal("anchor_line must be a 1-indexed line number")
	case b.limit < 1:
		return b, refusal("max_lines must be greater than zero")
	}
	return b, nil
}

// codeLine is a line that may belong to the block.
type codeLine struct {
	number int
	text   string
	indent int // columns; a blank line has the indentation of the line before
	blank  bool
}

// size returns the line's estimated size on a page, in bytes.
func (l codeLine) size() int { return len("L12345: \n") + len(l.text) }

// isComment reports whether the line begins like a comment or attribute in common languages.
func (l codeLine) isComment() bool {
	text := strings.TrimLeft(l.text, " \t")
	return slices.ContainsFunc([]string{"#", "//", "--", "/*", "*", "@"}, func(mark string) bool { return strings.HasPrefix(text, mark) })
}

// looksLikeEnd reports whether the line looks like the end of a block in common languages: it begins with a closing
// bracket or tag, or is a word such as end.
func (l codeLine) looksLikeEnd() bool {
	text := strings.TrimLeft(l.text, " \t")
	if strings.HasPrefix(text, "</") || text != "" && strings.ContainsRune("})]", rune(text[0])) {
		return true
	}
	afterWord := strings.TrimLeft(text, "abcdefghijklmnopqrstuvwxyz")
	return slices.Contains([]string{"end", "fi", "done", "esac"}, strings.TrimSuffix(text, afterWord))
}

// read reads the block and returns it as text.
func (b block) read(lines *lineReader) (string, error) {
	nearby, anchor, err := b.readAround(lines)
	if err != nil {
		return "", err
	}
	if lines.number == 0 {
		return "The file is empty.", nil
	}
	if anchor < 0 {
		return "", refusal(fmt.Sprintf("anchor_line exceeds file length: the last line is %d", lines.number))
	}
	first, last, full := b.extent(nearby, anchor)
	for first < last && nearby[first].blank {
		first++
	}
	for first < last && nearby[last].blank {
		last--
	}
	return formatBlock(nearby[first:last+1], full), nil
}

// readAround reads the lines before and after the anchor that can belong to the block: up to b.limit-1 lines on each side.
// anchor is the index of the anchor in nearby, or -1 if the file is too short. A blank line gets the indentation of the
// line before it.
func (b block) readAround(lines *lineReader) (nearby []codeLine, anchor int, err error) {
	anchor = -1
	indent := 0 // of the last line that is not blank
	lastNeeded := b.anchor + b.limit - 1
	for lines.number < lastNeeded || anchor < 0 {
		exists, err := lines.next()
		if err != nil {
			return nil, -1, err
		}
		if !exists {
			return nearby, anchor, nil
		}
		line := codeLine{number: lines.number, blank: len(bytes.TrimSpace(lines.line)) == 0}
		if !line.blank {
			indent = indentOf(lines.line)
		}
		line.indent = indent
		if line.number <= b.anchor-b.limit {
			continue
		}
		line.text = lines.text()
		nearby = append(nearby, line)
		if line.number == b.anchor {
			anchor = len(nearby) - 1
		}
	}
	return nearby, anchor, nil
}

// indentOf returns the indentation of a line, in columns.
func indentOf(line []byte) int {
	columns := 0
	for _, c := range line {
		switch c {
		case ' ':
			columns++
		case '\t':
			columns += tabWidth
		default:
			return columns
		}
	}
	return columns
}

// extent returns the indexes of the block's first and last line in nearby. It begins with the anchor line and adds a
// line above and a line below in turn, until both ends of the block are found, or the block or the page is full. full
// means that the page is.
func (b block) extent(nearby []codeLine, anchor int) (first, last int, full bool) {
	leastIndent := 0
	if b.levels > 0 {
		leastIndent = max(nearby[anchor].indent-min(b.levels, maxBlock)*tabWidth, 0)
	}
	first, last = anchor, anchor
	size := nearby[anchor].size()
	isTopLevel := nearby[anchor].indent <= leastIndent
	up := edge{block: b, leastIndent: leastIndent, mayGrow: true, isUpper: true, reachedLeast: isTopLevel && !nearby[anchor].looksLikeEnd()}
	down := edge{block: b, leastIndent: leastIndent, mayGrow: true}
	for turn := 0; up.mayGrow || down.mayGrow; turn++ {
		full = size >= maxPage
		if full || last-first+1 >= b.limit {
			break
		}
		isUpTurn := turn%2 == 0
		switch {
		case isUpTurn && up.grow(nearby, first-1):
			first--
			size += nearby[first].size()
		case !isUpTurn && down.grow(nearby, last+1):
			last++
			size += nearby[last].size()
		}
	}
	return first, last, full
}

// edge is a growing end of a block.
type edge struct {
	block
	leastIndent  int  // indentation of the line that ends the block
	isUpper      bool // it is the upper end
	mayGrow      bool // the end is not reached yet
	reachedLeast bool // the block contains a line with the least indentation
}

// grow reports whether the block grows by the line nearby[i]. The first line with the least indentation ends it: at the
// upper edge it is the header, before which only comments belong to the block; at the lower edge it belongs to the block
// only if it looks like an end.
func (e *edge) grow(nearby []codeLine, i int) bool {
	if !e.mayGrow || i < 0 || i >= len(nearby) || nearby[i].indent < e.leastIndent {
		e.mayGrow = false
		return false
	}
	line, hasLeastIndent := nearby[i], nearby[i].indent == e.leastIndent
	switch {
	case e.siblings: // neighbours with the least indentation belong to the block
	case e.isUpper && e.reachedLeast:
		e.mayGrow = hasLeastIndent && e.header && line.isComment()
	case hasLeastIndent && e.isUpper:
		e.reachedLeast = true
	case hasLeastIndent:
		e.mayGrow = false
		return line.looksLikeEnd()
	}
	return e.mayGrow
}

// formatBlock returns the block's lines with their numbers. full means that the page had no room for more.
func formatBlock(lines []codeLine, full bool) string {
	var text strings.Builder
	for _, line := range lines {
		fmt.Fprintf(&text, "L%d: %s\n", line.number, line.text)
	}
	if full {
		text.WriteString("(the block goes on, but the page is full; read other lines of it with mode slice)\n")
	}
	return text.String()
}
