package match

import (
	"bytes"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// needle is a text required in a matching line.
type needle struct {
	text []byte
	// fold means that case does not matter. Then text is lower-case ASCII, and anchor is the position of the character
	// that is searched first.
	fold   bool
	anchor int
}

// maxNeedles is the maximum number of texts to search for one after the other.
const maxNeedles = 8

// requiredTexts returns texts such that every match of the expression contains at least one of them. It returns none
// if it finds no such texts. exact means that, conversely, every line with one of them matches.
func requiredTexts(tree *syntax.Regexp) (needles []needle, exact bool) {
	switch tree.Op {
	case syntax.OpLiteral:
		return requiredOfLiteral(tree)
	case syntax.OpCapture, syntax.OpPlus:
		return requiredTexts(tree.Sub[0])
	case syntax.OpConcat:
		for _, sub := range tree.Sub {
			if found, _ := requiredTexts(sub); isMoreSelective(found, needles) {
				needles = found
			}
		}
		return needles, false
	case syntax.OpAlternate:
		exact = true
		for _, sub := range tree.Sub {
			found, subExact := requiredTexts(sub)
			if len(found) == 0 || len(needles)+len(found) > maxNeedles {
				return nil, false
			}
			needles, exact = append(needles, found...), exact && subExact
		}
		return needles, exact
	}
	return nil, false
}

// requiredByParts returns the required texts of each part of a sequence, without parts that have none. It returns
// nothing for other expressions.
func requiredByParts(tree *syntax.Regexp) [][]needle {
	var all [][]needle
	if tree.Op == syntax.OpConcat {
		for _, sub := range tree.Sub {
			if found, _ := requiredTexts(sub); len(found) > 0 {
				all = append(all, found)
			}
		}
	}
	return all
}

// requiredOfLiteral returns a text that every match of a literal contains, or none. exact means that, conversely, every
// line with the text matches.
func requiredOfLiteral(literal *syntax.Regexp) (needles []needle, exact bool) {
	if literal.Flags&syntax.FoldCase == 0 {
		if slices.Contains(literal.Rune, utf8.RuneError) { // U+FFFD also matches invalid bytes
			return nil, false
		}
		return []needle{{text: []byte(string(literal.Rune))}}, true
	}
	text := longestASCII(literal.Rune)
	n := needle{text: text, fold: true, anchor: rarest(text)}
	if n.anchor < 0 {
		return nil, false
	}
	return []needle{n}, len(text) == len(literal.Rune)
}

// isMoreSelective reports whether searching for a probably excludes more lines than searching for b, because its shortest
// text is longer.
func isMoreSelective(a, b []needle) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) > 0
	}
	return shortestLength(a) > shortestLength(b)
}

// shortestLength returns the length of the shortest text.
func shortestLength(needles []needle) int {
	length := len(needles[0].text)
	for _, n := range needles {
		length = min(length, len(n.text))
	}
	return length
}

// longestASCII returns the longest sequence of ASCII characters in a text, in lower case.
func longestASCII(runes []rune) []byte {
	var longest, run []byte
	for _, r := range runes {
		if r >= utf8.RuneSelf {
			run = nil
			continue
		}
		run = append(run, lower(byte(r)))
		if len(run) > len(longest) {
			longest = run
		}
	}
	return longest
}

// byFrequency lists characters of source code, roughly the most frequent first.
const byFrequency = " etranisolcdpum\t_fhgb.y,()=v\"w:x0;1/-{}k*'jz[]2q&"

// rarest returns the position of the character in text that is rarest in source code, or -1. It skips letters that also
// match a non-ASCII character.
func rarest(text []byte) int {
	best := -1
	for i := range len(text) {
		isRarest := best < 0 || rarity(text[i]) > rarity(text[best])
		if isRarest && nonASCIIForm(text[i]) == "" {
			best = i
		}
	}
	return best
}

// rarity returns a greater number for a rarer character.
func rarity(c byte) int {
	if i := strings.IndexByte(byFrequency, c); i >= 0 {
		return i
	}
	return len(byFrequency)
}

// nonASCIIForm returns the non-ASCII character that equals an ASCII letter if case is ignored, or "". There are two: the long s and
// the Kelvin sign.
func nonASCIIForm(letter byte) string {
	switch letter {
	case 's':
		return "\u017f"
	case 'k':
		return "\u212a"
	}
	return ""
}

// lower returns an ASCII letter in lower case, and other bytes unchanged.
func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// upper returns an ASCII letter in upper case, and other bytes unchanged.
func upper(c byte) byte {
	if 'a' <= c && c <= 'z' {
		return c - ('a' - 'A')
	}
	return c
}

// index returns a position of the needle in text, or -1. If case does not matter, that is the position of its anchor.
func (n *needle) index(text []byte) int {
	if !n.fold {
		return bytes.Index(text, n.text)
	}
	lowerCase, upperCase := n.text[n.anchor], upper(n.text[n.anchor])
	nextLower := byteCursor{text: text, c: lowerCase}
	nextUpper := byteCursor{text: text, c: upperCase}
	nextLower.advance(0)
	if upperCase == lowerCase {
		nextUpper.at = len(text)
	} else {
		nextUpper.advance(0)
	}
	for {
		at := min(nextLower.at, nextUpper.at)
		if at == len(text) {
			return -1
		}
		if n.containsAround(text, at) {
			return at
		}
		if nextLower.at == at {
			nextLower.advance(at + 1)
		} else {
			nextUpper.advance(at + 1)
		}
	}
}

// byteCursor visits the occurrences of a byte in a text.
type byteCursor struct {
	text []byte
	c    byte
	at   int // position of the current occurrence; len(text) if there are no more
}

// advance moves to the first occurrence at the position from or after it.
func (c *byteCursor) advance(from int) {
	if next := bytes.IndexByte(c.text[from:], c.c); next >= 0 {
		c.at = from + next
	} else {
		c.at = len(c.text)
	}
}

// containsAround reports whether text contains the needle with its anchor at the position at.
func (n *needle) containsAround(text []byte, at int) bool {
	before := text[:at]
	for i := n.anchor - 1; i >= 0; i-- {
		size := foldedSuffix(before, n.text[i])
		if size == 0 {
			return false
		}
		before = before[:len(before)-size]
	}
	after := text[at+1:]
	for i := n.anchor + 1; i < len(n.text); i++ {
		size := foldedPrefix(after, n.text[i])
		if size == 0 {
			return false
		}
		after = after[size:]
	}
	return true
}

// foldedSuffix returns the length of letter in upper or lower case at the end of text, or 0 if the text ends otherwise.
func foldedSuffix(text []byte, letter byte) int {
	if len(text) > 0 && lower(text[len(text)-1]) == letter {
		return 1
	}
	if w := nonASCIIForm(letter); w != "" && bytes.HasSuffix(text, []byte(w)) {
		return len(w)
	}
	return 0
}

// foldedPrefix returns the length of letter in upper or lower case at the start of text, or 0 if the text begins
// otherwise.
func foldedPrefix(text []byte, letter byte) int {
	if len(text) > 0 && lower(text[0]) == letter {
		return 1
	}
	if w := nonASCIIForm(letter); w != "" && bytes.HasPrefix(text, []byte(w)) {
		return len(w)
	}
	return 0
}
