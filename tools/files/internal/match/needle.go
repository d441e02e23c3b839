package match

import (
	"bytes"
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// maxNeedles is the maximum number of texts to search for one after the other.
const maxNeedles = 8

// required finds the texts that matching lines contain.
type required struct{ lower lowerCase }

// needlesOf returns texts such that every match of the expression contains at least one of them. It returns none if it finds no
// such texts. exact means that, conversely, every line with one of them matches.
func (r required) needlesOf(tree *syntax.Regexp) (needles [][]byte, exact bool) {
	switch tree.Op {
	case syntax.OpLiteral:
		return r.ofLiteral(tree)
	case syntax.OpCapture, syntax.OpPlus:
		return r.needlesOf(tree.Sub[0])
	case syntax.OpConcat:
		for _, found := range r.ofParts(tree) {
			if needles == nil || shortestLength(found) > shortestLength(needles) { // it probably excludes more lines
				needles = found
			}
		}
		return needles, false
	case syntax.OpAlternate:
		exact = true
		for _, sub := range tree.Sub {
			found, subExact := r.needlesOf(sub)
			if len(found) == 0 || len(needles)+len(found) > maxNeedles {
				return nil, false
			}
			needles, exact = append(needles, found...), exact && subExact
		}
		return needles, exact
	}
	return nil, false
}

// ofParts returns the required texts of each part of a sequence, without parts that have none. It returns nothing for
// other expressions.
func (r required) ofParts(tree *syntax.Regexp) (all [][][]byte) {
	if tree.Op == syntax.OpConcat {
		for _, sub := range tree.Sub {
			if found, _ := r.needlesOf(sub); len(found) > 0 {
				all = append(all, found)
			}
		}
	}
	return all
}

// ofLiteral returns a text that every match of a literal contains, or none. exact means that, conversely, every line
// with the text matches.
func (r required) ofLiteral(literal *syntax.Regexp) (needles [][]byte, exact bool) {
	if !foldsCase(literal) {
		if slices.Contains(literal.Rune, utf8.RuneError) { // U+FFFD also matches invalid bytes
			return nil, false
		}
		return [][]byte{r.lower.lower([]byte(string(literal.Rune)))}, !bool(r.lower)
	}
	text := longestASCII(literal.Rune)
	if len(text) == 0 {
		return nil, false
	}
	return [][]byte{r.lower.lower(text)}, len(text) == len(literal.Rune)
}

// foldsCase reports whether case does not matter in an expression or in a part of it.
func foldsCase(tree *syntax.Regexp) bool {
	isFolded := tree.Op == syntax.OpLiteral && tree.Flags&syntax.FoldCase != 0
	return isFolded || slices.ContainsFunc(tree.Sub, foldsCase)
}

// shortestLength returns the length of the shortest text.
func shortestLength(needles [][]byte) int {
	length := len(needles[0])
	for _, n := range needles {
		length = min(length, len(n))
	}
	return length
}

// longestASCII returns the longest sequence of ASCII characters in a text.
func longestASCII(runes []rune) []byte {
	var longest, run []byte
	for _, r := range runes {
		if r >= utf8.RuneSelf {
			run = nil
			continue
		}
		run = append(run, byte(r))
		if len(run) > len(longest) {
			longest = run
		}
	}
	return longest
}

// lowerCase reports whether texts are searched in lower case. False changes nothing.
type lowerCase bool

// lower returns a text with ASCII letters in lower case, and other bytes unchanged.
func (l lowerCase) lower(text []byte) []byte {
	if !l {
		return text
	}
	lower := bytes.Clone(text)
	rest := lower
	for ; len(rest) >= 8; rest = rest[8:] { // eight bytes at once, which is several times faster
		const each, top = 0x0101010101010101, 0x80 // one in each byte, and the top bit of one
		word := binary.LittleEndian.Uint64(rest)
		low := word &^ (top * each)
		capitals := (low + (top-'A')*each) &^ (low + (top-1-'Z')*each) &^ word & (top * each) // from A, not after Z, ASCII
		binary.LittleEndian.PutUint64(rest, word+capitals>>2)                                 // 'a'-'A' is top>>2
	}
	for i, c := range rest {
		if 'A' <= c && c <= 'Z' {
			rest[i] += 'a' - 'A'
		}
	}
	return lower
}

// lettersOutsideASCII are the characters outside of ASCII that equal an ASCII letter if case is ignored: the long s and
// the Kelvin sign.
var lettersOutsideASCII = [][]byte{[]byte("\u017f"), []byte("\u212a")}
