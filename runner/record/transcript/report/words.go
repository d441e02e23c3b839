package report

import (
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// compareLines returns removed lines next to the added lines that replace them. In similar lines it marks
// the words that differ.
func compareLines(removed, added []string) change {
	c := change{Old: unmarkedLines(removed), New: unmarkedLines(added)}
	for i := range min(len(removed), len(added)) {
		if a, b, alike := markDifferences(splitWords(removed[i]), splitWords(added[i])); alike {
			c.Old[i], c.New[i] = a, b
		}
	}
	return c
}

// unmarkedLines returns a line for each text, without marks.
func unmarkedLines(texts []string) []line {
	lines := make([]line, 0, len(texts))
	for _, text := range texts {
		lines = append(lines, line{{Text: text}})
	}
	return lines
}

// markDifferences marks the words between the common beginning and the common end of two lines. alike is
// false if less than a third of the longer line is common, ignoring blanks.
func markDifferences(a, b []string) (old, replacement line, alike bool) {
	head, tail := 0, 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	if 3*letters(slices.Concat(a[:head], a[len(a)-tail:])) < max(letters(a), letters(b)) {
		return nil, nil, false
	}
	return pieces(a, head, tail), pieces(b, head, tail), true
}

// wordPattern matches a run of letters and digits, a run of blanks, or one other character.
var wordPattern = lazyregexp.New(`(?s)[\pL\p{Nd}_]+|[\s\v\x{85}\pZ]+|.`)

// splitWords splits a line into words, runs of blanks and other characters.
func splitWords(s string) []string { return wordPattern().FindAllString(s, -1) }

// letters returns the length of words in bytes, ignoring blanks.
func letters(all []string) (n int) {
	for _, w := range all {
		n += len(strings.TrimSpace(w))
	}
	return n
}

// pieces joins words to up to three pieces: the first head words, the marked middle, and the last
// tail words. Empty pieces are left out.
func pieces(all []string, head, tail int) (out line) {
	end := len(all) - tail
	for _, p := range []piece{{Text: strings.Join(all[:head], "")}, {strings.Join(all[head:end], ""), true}, {Text: strings.Join(all[end:], "")}} {
		if p.Text != "" {
			out = append(out, p)
		}
	}
	return out
}
