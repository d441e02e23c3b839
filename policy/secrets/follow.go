package secrets

import (
	"cmp"
	"strings"
)

const (
	// margin bounds the letters before the encoded bytes of a line, such as a file name or an offset.
	// column bounds the letters after them, such as the same bytes as characters.
	margin = 64
	column = 24
	// minStraight is the number of uninterrupted bytes of a spelling required before a skip.
	minStraight = 12
	// chanceMatches is the number of letters in a margin or column that may match by chance.
	chanceMatches = 8
	// maxSeparator bounds the bytes between two numbers of a line.
	maxSeparator = 8
)

// traceAround returns the trace around one common letter of text and spelling. It returns the zero
// trace if fewer than letterGram letters match from there on.
func traceAround(text *letters, place letterPlace, at int) trace {
	offset := int(place.offset)
	r := trace{text: text, spelling: place.spelling, first: at, last: at, from: offset, to: offset}
	if !r.same(at, offset) {
		return trace{}
	}
	r.extend(+1)
	if r.letters() < letterGram {
		return trace{}
	}
	r.extend(-1)
	return r
}

// same reports whether a letter of the text equals that of the spelling.
func (r *trace) same(at, letter int) bool {
	s := r.spelling
	return r.text.all[at] == s.letters[letter] && (s.ignoresCase || r.text.text[r.text.at[at]] == s.form[s.at[letter]])
}

// extend makes the trace longer at one end, forward (+1) or backward (-1).
func (r *trace) extend(direction int) {
	at, letter := r.last, r.to
	if direction < 0 {
		at, letter = r.first, r.from
	}
	straight := r.letters() // number of letters followed without a skip
	for {
		for r.nextMatches(at, letter, direction) {
			at, letter, straight = at+direction, letter+direction, straight+1
		}
		r.unbrokenTo = cmp.Or(r.unbrokenTo, at)
		if straight < letterGram || r.bytes(letter, letter-direction*(straight-1)) < minStraight {
			break
		}
		nextAt, nextLetter, found := r.nextLine(at, letter, direction, straight)
		if !found {
			break
		}
		at, letter, straight = nextAt, nextLetter, 1
	}
	if direction > 0 {
		r.last, r.to = at, letter
	} else {
		r.first, r.from = at, letter
	}
}

// bytes returns the number of bytes of the spelling from one letter to another, including both.
func (r *trace) bytes(one, other int) int {
	return int(max(r.spelling.at[one], r.spelling.at[other])-min(r.spelling.at[one], r.spelling.at[other])) + 1
}

// nextMatches reports whether the next letter of the text equals that of the spelling, with a permitted
// gap before it.
func (r *trace) nextMatches(at, letter, direction int) bool {
	at, letter = at+direction, letter+direction
	if at < 0 || at >= len(r.text.all) || letter < 0 || letter >= len(r.spelling.letters) || !r.same(at, letter) {
		return false
	}
	if direction < 0 {
		at, letter = at+1, letter+1
	}
	gap, ok := r.text.gap(at)
	if !ok {
		return false
	}
	if want := r.spelling.gap(letter); gap != want || r.spacing == apart {
		may := r.gapMatches(gap, want)
		r.changed = r.changed || may
		return may
	}
	if r.spacing == unknown && !r.spelling.numbers {
		r.spacing = tight
	}
	return true
}

// gapMatches reports whether a gap of the text may replace the gap want of the spelling. It also
// records what the gap shows about the trace: line ends and spacing.
func (r *trace) gapMatches(gap, want string) bool {
	if breaksLine(gap) || r.spelling.unlikeText && gap == " " && r.spacing != apart {
		may := r.spelling.numbers || isSubsequence(withoutSeparators(gap), withoutSeparators(want))
		r.broken = r.broken || may
		return may
	}
	if r.spelling.numbers {
		return want != "" && len(gap) <= maxSeparator && (gap != "" || !r.spelling.needsSeparator)
	}
	found, wanted := withoutSeparators(gap), withoutSeparators(want)
	switch {
	case found != wanted:
		return false
	case strings.ContainsAny(want, " \t\r\n"): // a blank of the value itself
		return true
	}
	spacing := tight
	if strings.Trim(gap, `\`+want) != "" {
		spacing = apart
	}
	if r.spacing == unknown {
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

// nextLine finds where a trace continues on the next line, after the extra letters of both lines. The
// last letters before the line end may have matched by chance, up to back of them; nextLine then goes
// back before these.
func (r *trace) nextLine(at, letter, direction, back int) (nextAt, nextLetter int, found bool) {
	if next := letter + direction; next < 0 || next >= len(r.spelling.letters) {
		return 0, 0, false
	}
	near, far := column, margin
	if direction < 0 {
		near, far = far, near
	}
	for ahead := -chanceMatches; ahead < near; ahead++ { // letters from at to the line end; negative if matched by chance
		if !r.breaksBehind(at+direction*ahead, direction) {
			continue
		}
		begin := at + direction*(ahead+1)
		reach := r.lettersOnLine(begin, direction, far)
		for c := max(0, -ahead); c < min(back, chanceMatches+1) && ahead+c < near; c++ {
			next := letter - direction*(c-1)
			if skipped := r.resumes(begin, next, direction, reach, letterGram+c); skipped >= 0 {
				r.broken, r.changed = true, true
				r.columns = r.columns || direction > 0 && ahead+c > 0 || direction < 0 && skipped > 0
				return begin + direction*skipped, next, true
			}
		}
		if ahead >= 0 {
			break
		}
	}
	return 0, 0, false
}

// breaksBehind reports whether a line ends between a letter of the text and the next one in direction.
func (r *trace) breaksBehind(at, direction int) bool {
	if direction < 0 {
		at--
	}
	if at < 0 || at+1 >= len(r.text.all) || r.text.at[at+1] == r.text.at[at]+1 {
		return false
	}
	gap, ok := r.text.gap(at + 1)
	return ok && breaksLine(gap)
}

// lettersOnLine counts the letters after a letter in direction, on its line and up to far.
func (r *trace) lettersOnLine(at, direction, far int) int {
	n := 0
	for next := at + direction; n < far && next >= 0 && next < len(r.text.all) && !r.breaksBehind(next-direction, direction); next += direction {
		n++
	}
	return n
}

// resumes returns the number of letters before the next matching sequence of at least least
// letters, or -1.
func (r *trace) resumes(at, letter, direction, reach, least int) int {
	if letter < 0 || letter >= len(r.spelling.letters) {
		return -1
	}
	wanted := r.spelling.letters[letter]
	for skipped := 0; skipped <= reach; skipped++ {
		if r.text.all[at] == wanted && r.matchesFrom(at, letter, direction, least, skipped > 0) {
			return skipped
		}
		at += direction
	}
	return -1
}

// matchesFrom reports whether least letters match from at on. Fewer suffice if the spelling ends
// first; with word, they must then end at the edge of a token.
func (r *trace) matchesFrom(at, letter, direction, least int, word bool) bool {
	for n := range least {
		if letter < 0 || letter >= len(r.spelling.letters) {
			return !word || n > 0 && r.atTokenEdge(at-direction*n, direction)
		}
		if at < 0 || at >= len(r.text.all) || !r.same(at, letter) {
			return false
		}
		at, letter = at+direction, letter+direction
	}
	return true
}

// atTokenEdge reports whether a word begins with a letter, or with direction -1, ends with it.
func (r *trace) atTokenEdge(at, direction int) bool {
	if direction < 0 {
		at++
	}
	if at <= 0 || at >= len(r.text.all) {
		return true
	}
	gap, _ := r.text.gap(at)
	return gap != ""
}
