// Package match reports whether a text has a line that matches a regular expression. It opens no
// files.
//
// It finds texts that a matching line must contain and searches for them first. It applies the expression only to lines
// with such a text.
package match

import (
	"bytes"
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"
)

// Pattern is a compiled expression. It is safe for concurrent use.
type Pattern struct {
	expression   *regexp.Regexp
	pieceSize    int        // maximum bytes of text to match at once
	needles      []needle   // a matching line contains at least one; empty if unknown
	otherNeedles [][]needle // a matching line contains at least one of each
	exact        bool       // a line that contains one of needles matches
}

// ErrNewline reports an expression with a newline.
var ErrNewline = errors.New("a newline can't be searched for: lines are searched one by one")

// Compile parses an expression in RE2 syntax for single lines: "^" and "$" are the ends of a line,
// a CRLF's "\r" belongs to the line end, and nothing matches a newline. The error is ErrNewline or
// regexp/syntax's.
func Compile(expression string) (*Pattern, error) {
	tree, err := syntax.Parse(expression, syntax.Perl&^(syntax.OneLine|syntax.ClassNL))
	if err != nil {
		return nil, err
	}
	if asksForNewline(tree) {
		return nil, ErrNewline
	}
	tree = limitToLine(tree).Simplify()
	compiled, err := regexp.Compile(tree.String())
	if err != nil {
		return nil, err
	}
	p := &Pattern{expression: compiled, pieceSize: pieceSize(tree)}
	p.needles, p.exact = requiredTexts(tree)
	p.otherNeedles = requiredByParts(tree)
	return p, nil
}

func asksForNewline(tree *syntax.Regexp) bool {
	return tree.Op == syntax.OpLiteral && slices.Contains(tree.Rune, '\n') || slices.ContainsFunc(tree.Sub, asksForNewline)
}

// limitToLine changes an expression so that it does not match across the end of a line.
func limitToLine(tree *syntax.Regexp) *syntax.Regexp {
	for i, sub := range tree.Sub {
		tree.Sub[i] = limitToLine(sub)
	}
	switch tree.Op {
	case syntax.OpAnyChar:
		tree.Op = syntax.OpAnyCharNotNL
	case syntax.OpCharClass:
		tree.Rune = withoutRune(tree.Rune, '\n')
	case syntax.OpBeginText:
		tree.Op = syntax.OpBeginLine
	case syntax.OpEndText, syntax.OpEndLine:
		return lineEnd()
	}
	return tree
}

// lineEnd returns the expression `\r?$`.
func lineEnd() *syntax.Regexp {
	carriageReturn := &syntax.Regexp{Op: syntax.OpLiteral, Rune: []rune{'\r'}}
	return &syntax.Regexp{Op: syntax.OpConcat, Sub: []*syntax.Regexp{
		{Op: syntax.OpQuest, Sub: []*syntax.Regexp{carriageReturn}},
		{Op: syntax.OpEndLine},
	}}
}

// withoutRune removes a character from a class, a list of ranges.
func withoutRune(class []rune, r rune) []rune {
	rest := make([]rune, 0, len(class)+2)
	for i := 0; i < len(class); i += 2 {
		lo, hi := class[i], class[i+1]
		if r < lo || hi < r {
			rest = append(rest, lo, hi)
			continue
		}
		if lo < r {
			rest = append(rest, lo, r-1)
		}
		if r < hi {
			rest = append(rest, r+1, hi)
		}
	}
	return rest
}

// pieceSize returns the largest text that package regexp matches by backtracking, which is several times faster. For that,
// one bit for each instruction and position must fit in 32 KiB.
func pieceSize(tree *syntax.Regexp) int {
	const (
		bits    = 256 << 10
		largest = 64 << 10
	)
	program, err := syntax.Compile(tree)
	if err != nil {
		return largest
	}
	return min(bits/len(program.Inst)-1, largest)
}

// MatchLines reports whether a line of text matches. text consists of complete lines. Only the last may have no newline.
func (p *Pattern) MatchLines(text []byte) bool {
	switch {
	case len(text) == 0:
		return false
	case len(p.needles) == 0:
		return p.matchPieces(text)
	}
	for i := range p.needles {
		if p.matchAround(&p.needles[i], text) {
			return true
		}
	}
	return false
}

// matchAround searches for a needle and applies the expression to the lines that contain it.
func (p *Pattern) matchAround(n *needle, text []byte) bool {
	for len(text) > 0 {
		at := n.index(text)
		if at < 0 {
			return false
		}
		if p.exact {
			return true
		}
		start := bytes.LastIndexByte(text[:at], '\n') + 1
		line, rest, _ := bytes.Cut(text[start:], newline)
		if p.mayMatch(line) && p.expression.Match(line) {
			return true
		}
		text = rest
	}
	return false
}

// mayMatch reports whether a line contains the other needles. This is cheaper than applying the expression.
func (p *Pattern) mayMatch(line []byte) bool {
	for _, needles := range p.otherNeedles {
		if !slices.ContainsFunc(needles, func(n needle) bool { return n.index(line) >= 0 }) {
			return false
		}
	}
	return true
}

var newline = []byte{'\n'}

// pieceEnd returns the length of the lines at the start of text to match at once: as many as fit in
// pieceSize, or a single longer one.
func (p *Pattern) pieceEnd(text []byte) int {
	if len(text) <= p.pieceSize {
		return len(text)
	}
	if i := bytes.LastIndexByte(text[:p.pieceSize], '\n'); i >= 0 {
		return i + 1
	}
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		return i + 1
	}
	return len(text)
}

// matchPieces gives the whole text to the expression, as many lines at once as
// it takes quickly.
func (p *Pattern) matchPieces(text []byte) bool {
	for len(text) > 0 {
		end := p.pieceEnd(text)
		// Without the final newline, after which no line begins.
		if p.expression.Match(bytes.TrimSuffix(text[:end], newline)) {
			return true
		}
		text = text[end:]
	}
	return false
}
