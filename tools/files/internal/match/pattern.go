// Package match reports whether a text has a line that matches a regular expression. It opens no
// files.
//
// It first searches for texts that every matching line must contain. It applies the expression only to lines that contain
// such a text.
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
	needles      [][]byte   // a matching line contains at least one of them; empty if unknown
	otherNeedles [][][]byte // a matching line contains at least one needle of each list
	exact        bool       // every line that contains one of needles matches
	lower        lowerCase  // a part of the expression ignores case: needles are in lower case, and text is searched in lower case
	outside      *Pattern   // finds the matching lines with lettersOutsideASCII if lower is true; otherwise nil
}

// ErrNewline is the error for an expression that contains a newline.
var ErrNewline = errors.New("a newline can't be searched for: lines are searched one by one")

// Compile parses an expression in RE2 syntax that is applied to single lines. "^" and "$" match at the ends of a line, "$"
// also before the "\r" of a CRLF, and nothing matches a newline. The error is ErrNewline, or that of regexp/syntax.
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
	p := &Pattern{expression: compiled, pieceSize: pieceSize(tree), lower: lowerCase(foldsCase(tree))}
	if p.lower {
		p.outside = &Pattern{expression: compiled, needles: lettersOutsideASCII}
	}
	p.needles, p.exact = required{p.lower}.needlesOf(tree)
	p.otherNeedles = required{p.lower}.ofParts(tree)
	return p, nil
}

// asksForNewline reports whether an expression contains a literal newline.
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

// withoutRune removes a character from a character class. A class is a list of ranges, each with its first and last
// character.
func withoutRune(class []rune, r rune) []rune {
	rest := make([]rune, 0, len(class)+2)
	for i := 0; i < len(class); i += 2 {
		first, last := class[i], class[i+1]
		if r < first || last < r {
			rest = append(rest, first, last)
			continue
		}
		if first < r {
			rest = append(rest, first, r-1)
		}
		if r < last {
			rest = append(rest, r+1, last)
		}
	}
	return rest
}

// pieceSize returns the maximum length of a text for which package regexp uses backtracking, which is several times
// faster. It does so if one bit for each instruction and position fits into 32 KiB.
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

// MatchLines reports whether a line of text matches. text consists of complete lines; the last one needs no newline.
func (p *Pattern) MatchLines(text []byte) bool {
	switch {
	case len(text) == 0:
		return false
	case len(p.needles) == 0:
		return p.matchPieces(text)
	}
	searched := p.lower.lower(text)
	found := slices.ContainsFunc(p.needles, func(n []byte) bool { return p.matchAround(n, text, searched) })
	return found || p.outside != nil && p.outside.MatchLines(text)
}

// matchAround reports whether a line that contains the needle matches. searched is text as p.lower changes it.
func (p *Pattern) matchAround(needle, text, searched []byte) bool {
	for {
		at := bytes.Index(searched, needle)
		if at < 0 {
			return false
		}
		if p.exact {
			return true
		}
		start := bytes.LastIndexByte(text[:at], '\n') + 1
		line, rest, _ := bytes.Cut(text[start:], newline)
		if p.mayMatch(searched[start:start+len(line)]) && p.expression.Match(line) {
			return true
		}
		text, searched = rest, searched[len(searched)-len(rest):]
	}
}

// mayMatch reports whether a line contains a needle of each list in otherNeedles. This is cheaper than applying the
// expression.
func (p *Pattern) mayMatch(line []byte) bool {
	for _, needles := range p.otherNeedles {
		if !slices.ContainsFunc(needles, func(n []byte) bool { return bytes.Contains(line, n) }) {
			return false
		}
	}
	return true
}

var newline = []byte{'\n'}

// pieceEnd returns the length of the piece at the start of text to match at once: as many lines as fit into pieceSize, or
// a single longer line.
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

// matchPieces applies the expression to the complete text, piece by piece.
func (p *Pattern) matchPieces(text []byte) bool {
	for len(text) > 0 {
		end := p.pieceEnd(text)
		// Drop the final newline, because no line begins after it.
		if p.expression.Match(bytes.TrimSuffix(text[:end], newline)) {
			return true
		}
		text = text[end:]
	}
	return false
}
