package report

import (
	"slices"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// compareLines draws removed lines and the added lines that replace them. In similar lines it marks the
// words that differ.
func compareLines(removed, added []string) (old, replacement g.Group) {
	unmarked := func(text string) g.Node { return lineNode(g.Text(text)) }
	old, replacement = g.Map(removed, unmarked), g.Map(added, unmarked)
	for i := range min(len(removed), len(added)) {
		if a, b, alike := markDifferences(splitWords(removed[i]), splitWords(added[i])); alike {
			old[i], replacement[i] = a, b
		}
	}
	return old, replacement
}

// lineNode draws a line of a diff from its pieces.
func lineNode(pieces ...g.Node) g.Node { return h.Span(g.Group(pieces), g.Text("\n")) }

// markDifferences draws two lines with marks on the words between their common beginning and common end.
// alike is false if less than a third of the longer line is common, ignoring blanks.
func markDifferences(a, b []string) (old, replacement g.Node, alike bool) {
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
	return markMiddle(a, head, tail), markMiddle(b, head, tail), true
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

// markMiddle draws a line whose words are marked, except the first head and the last tail words.
func markMiddle(words []string, head, tail int) g.Node {
	text := func(part []string) g.Node { return g.Text(strings.Join(part, "")) }
	end := len(words) - tail
	return lineNode(text(words[:head]), g.If(head < end, h.Mark(text(words[head:end]))), text(words[end:]))
}
