package secrets

import (
	"cmp"
	"strings"
)

const (
	// maxMargin bounds the letters before the encoded bytes of a line, such as a file name or an offset.
	// maxColumn bounds the letters after them, such as the same bytes as characters.
	maxMargin = 64
	maxColumn = 24
	// minStraight is the number of uninterrupted bytes of a spelling required before a skip.
	minStraight = 12
	// maxChanceMatches is the number of letters in a margin or column that may match by chance.
	maxChanceMatches = 8
	// maxSeparator bounds the bytes between two numbers of a line.
	maxSeparator = 8
)

// traceAround returns the trace around one common letter of text and spelling. It returns the zero
// trace if fewer than letterGram letters match from there on.
func traceAround(text *letters, place letterPlace, at int) trace {
	offset := int(place.offset)
	r := trace{text: text, spelling: place.spelling, textFirst: at, textLast: at, spellingFirst: offset, spellingLast: offset}
	if !r.lettersEqual(at, offset) {
		return trace{}
	}
	r.extend(+1)
	if r.length() < letterGram {
		return trace{}
	}
	r.extend(-1)
	return r
}

// lettersEqual reports whether a letter of the text equals that of the spelling.
func (r *trace) lettersEqual(at, letter int) bool {
	s := r.spelling
	return r.text.lower[at] == s.letters[letter] && (s.ignoresCase || r.text.text[r.text.offsets[at]] == s.form[s.offsets[letter]])
}

// extend makes the trace longer at one end, forward (+1) or backward (-1).
func (r *trace) extend(direction int) {
	at, letter := r.textLast, r.spellingLast
	if direction < 0 {
		at, letter = r.textFirst, r.spellingFirst
	}
	unskipped := r.length() // number of letters followed without a skip
	for {
		for r.nextMatches(at, letter, direction) {
			at, letter, unskipped = at+direction, letter+direction, unskipped+1
		}
		r.unbrokenTo = cmp.Or(r.unbrokenTo, at)
		if unskipped < letterGram || r.spellingBytes(letter, letter-direction*(unskipped-1)) < minStraight {
			break
		}
		nextAt, nextLetter, found := r.continueOnNextLine(at, letter, direction, unskipped)
		if !found {
			break
		}
		at, letter, unskipped = nextAt, nextLetter, 1
	}
	if direction > 0 {
		r.textLast, r.spellingLast = at, letter
	} else {
		r.textFirst, r.spellingFirst = at, letter
	}
}

// spellingBytes returns the number of bytes of the spelling from one letter to another, including both.
func (r *trace) spellingBytes(one, other int) int {
	return int(max(r.spelling.offsets[one], r.spelling.offsets[other])-min(r.spelling.offsets[one], r.spelling.offsets[other])) + 1
}

// nextMatches reports whether the next letter of the text equals that of the spelling, with a permitted
// gap before it.
func (r *trace) nextMatches(at, letter, direction int) bool {
	at, letter = at+direction, letter+direction
	if at < 0 || at >= len(r.text.lower) || letter < 0 || letter >= len(r.spelling.letters) || !r.lettersEqual(at, letter) {
		return false
	}
	if direction < 0 { // backward, the gap is before the letters that were followed last
		at, letter = at+1, letter+1
	}
	gap, ok := r.text.gapBefore(at)
	if !ok {
		return false
	}
	if want := r.spelling.gapBefore(letter); gap != want || r.spacing == wideSpacing {
		matches := r.gapMatches(gap, want)
		r.gapsDiffer = r.gapsDiffer || matches
		return matches
	}
	if r.spacing == unknownSpacing && !r.spelling.numbers {
		r.spacing = tightSpacing
	}
	return true
}

// gapMatches reports whether a gap of the text may replace the gap want of the spelling. It also
// records what the gap shows about the trace: line ends and spacing.
func (r *trace) gapMatches(gap, want string) bool {
	if breaksLine(gap) || r.spelling.unlikeText && gap == " " && r.spacing != wideSpacing {
		matches := r.spelling.numbers || isSubsequence(withoutSeparators(gap), withoutSeparators(want))
		r.hasLineEnds = r.hasLineEnds || matches
		return matches
	}
	if r.spelling.numbers {
		return want != "" && len(gap) <= maxSeparator && (gap != "" || !r.spelling.needsSeparator)
	}
	actual, expected := withoutSeparators(gap), withoutSeparators(want)
	switch {
	case actual != expected:
		return false
	case strings.ContainsAny(want, " \t\r\n"): // a blank of the value itself
		return true
	}
	spacing := tightSpacing
	if strings.Trim(gap, `\`+want) != "" {
		spacing = wideSpacing
	}
	if r.spacing == unknownSpacing {
		r.spacing = spacing
	}
	return r.spacing == spacing
}

// withoutSeparators removes bytes that may separate any two characters: blanks, bytes of UTF-16, backslashes.
func withoutSeparators(gap string) string {
	return strings.Map(func(c rune) rune {
		switch c {
		case ' ', '\t', '\r', '\n', 0, '\uFFFD', '\\':
			return -1
		}
		return c
	}, gap)
}

// isSubsequence reports whether text contains the bytes of part in order.
func isSubsequence(text, part string) bool {
	for i := 0; i < len(text) && part != ""; i++ {
		if text[i] == part[0] {
			part = part[1:]
		}
	}
	return part == ""
}

// continueOnNextLine finds where a trace continues on the next line, after the extra letters of both lines. The
// last letters before the line end may have matched by chance, up to unskipped of them; continueOnNextLine then goes
// back before these.
func (r *trace) continueOnNextLine(at, letter, direction, unskipped int) (nextAt, nextLetter int, found bool) {
	if next := letter + direction; next < 0 || next >= len(r.spelling.letters) {
		return 0, 0, false
	}
	for ahead := -maxChanceMatches; ahead < maxBeforeLineEnd(direction); ahead++ { // letters from at to the line end; negative if matched by chance
		if !r.lineEndsAfter(at+direction*ahead, direction) {
			continue
		}
		lineStart := at + direction*(ahead+1)
		nextAt, nextLetter, found = r.continueOnLine(lineStart, letter, direction, ahead, unskipped)
		if found || ahead >= 0 {
			return nextAt, nextLetter, found
		}
	}
	return 0, 0, false
}

// maxBeforeLineEnd bounds the extra letters between a trace and the line end that it crosses in direction.
func maxBeforeLineEnd(direction int) int {
	if direction < 0 {
		return maxMargin
	}
	return maxColumn
}

// continueOnLine is continueOnNextLine for the line that starts at lineStart. ahead is the number of
// letters between the trace and the line end; it is negative if the last letters may have matched by
// chance.
func (r *trace) continueOnLine(lineStart, letter, direction, ahead, unskipped int) (nextAt, nextLetter int, found bool) {
	maxSkipped := r.lettersOnLine(lineStart, direction, maxBeforeLineEnd(-direction))
	for byChance := max(0, -ahead); byChance < min(unskipped, maxChanceMatches+1) && ahead+byChance < maxBeforeLineEnd(direction); byChance++ {
		next := letter - direction*(byChance-1)
		skipped := r.skipsBeforeMatch(lineStart, next, direction, maxSkipped, letterGram+byChance)
		if skipped < 0 {
			continue
		}
		r.hasLineEnds, r.gapsDiffer = true, true
		skippedBefore := ahead + byChance // letters between the trace and the line end
		if direction < 0 {
			skippedBefore = skipped
		}
		r.hasColumns = r.hasColumns || skippedBefore > 0
		return lineStart + direction*skipped, next, true
	}
	return 0, 0, false
}

// lineEndsAfter reports whether a line ends between a letter of the text and the next one in direction.
func (r *trace) lineEndsAfter(at, direction int) bool {
	if direction < 0 {
		at--
	}
	if at < 0 || at+1 >= len(r.text.lower) || r.text.offsets[at+1] == r.text.offsets[at]+1 {
		return false
	}
	gap, ok := r.text.gapBefore(at + 1)
	return ok && breaksLine(gap)
}

// lettersOnLine counts the letters after a letter in direction, on its line and up to limit.
func (r *trace) lettersOnLine(at, direction, limit int) int {
	n := 0
	for next := at + direction; n < limit && next >= 0 && next < len(r.text.lower) && !r.lineEndsAfter(next-direction, direction); next += direction {
		n++
	}
	return n
}

// skipsBeforeMatch returns how many letters of the text, from index at on, must be skipped until at least
// minLength letters match the spelling from index letter on. It returns -1 if it is more than maxSkipped.
// direction is 1 or -1.
func (r *trace) skipsBeforeMatch(at, letter, direction, maxSkipped, minLength int) int {
	if letter < 0 || letter >= len(r.spelling.letters) {
		return -1
	}
	wanted := r.spelling.letters[letter]
	for skipped := 0; skipped <= maxSkipped; skipped++ {
		if r.text.lower[at] == wanted && r.matchesFrom(at, letter, direction, minLength, skipped > 0) {
			return skipped
		}
		at += direction
	}
	return -1
}

// matchesFrom reports whether minLength letters match from at on. Fewer suffice if the spelling ends
// first; with needsEdge, they must then end at the edge of a token.
func (r *trace) matchesFrom(at, letter, direction, minLength int, needsEdge bool) bool {
	for n := range minLength {
		if letter < 0 || letter >= len(r.spelling.letters) {
			return !needsEdge || n > 0 && r.atTokenEdge(at-direction*n, direction)
		}
		if at < 0 || at >= len(r.text.lower) || !r.lettersEqual(at, letter) {
			return false
		}
		at, letter = at+direction, letter+direction
	}
	return true
}

// atTokenEdge reports whether the letter is the first of its word or, with direction -1, the last.
func (r *trace) atTokenEdge(at, direction int) bool {
	if direction < 0 {
		at++
	}
	if at <= 0 || at >= len(r.text.lower) {
		return true
	}
	gap, _ := r.text.gapBefore(at)
	return gap != ""
}
