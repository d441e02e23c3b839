package report

import (
	"regexp"
	"sync"
)

// compare puts lines that were removed beside those that came in their place.
// Lines that are alike have the words marked in which they differ.
func compare(old, fresh []string) change {
	c := change{Old: whole(old), New: whole(fresh)}
	for i := range min(len(old), len(fresh)) {
		if a, b, alike := mark(words(old[i]), words(fresh[i])); alike {
			c.Old[i], c.New[i] = a, b
		}
	}
	return c
}

func whole(texts []string) []line {
	lines := make([]line, 0, len(texts))
	for _, text := range texts {
		lines = append(lines, line{{Text: text}})
	}
	return lines
}

// mostWords is how many words a line may have to be compared: the time grows
// with the square.
const mostWords = 150

// mark marks what a and b don't share. They are alike when they share at least
// a third of the longer one, blanks not counted.
func mark(a, b []string) (old, fresh line, alike bool) {
	if len(a) > mostWords || len(b) > mostWords {
		return nil, nil, false
	}
	inA, inB := shared(a, b)
	if 3*letters(a, inA) < max(letters(a, nil), letters(b, nil)) {
		return nil, nil, false
	}
	return pieces(a, inA), pieces(b, inB), true
}

// wordPattern is a run of letters and digits, a run of blanks, or a single other
// character.
var wordPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?s)[\pL\p{Nd}_]+|[\s\v\x{85}\pZ]+|.`)
})

func words(s string) []string { return wordPattern().FindAllString(s, -1) }

// shared says which words of a and b belong to their longest common subsequence.
func shared(a, b []string) (inA, inB []bool) {
	longest := make([][]int, len(a)+1)
	for i := range longest {
		longest[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			if a[i] == b[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			}
		}
	}
	inA, inB = make([]bool, len(a)), make([]bool, len(b))
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			inA[i], inB[j] = true, true
			i, j = i+1, j+1
		case longest[i+1][j] >= longest[i][j+1]:
			i++
		default:
			j++
		}
	}
	return inA, inB
}

// letters is the length of the words that are in, or of all, without blanks.
func letters(all []string, in []bool) int {
	n := 0
	for i, w := range all {
		if (in == nil || in[i]) && !isBlank(w) {
			n += len(w)
		}
	}
	return n
}

func isBlank(w string) bool { return w[0] == ' ' || w[0] == '\t' }

// pieces joins words into runs of marked and unmarked text. A blank between two
// marked words is marked with them.
func pieces(all []string, in []bool) line {
	var out line
	for i, w := range all {
		marked := !in[i] || isBlank(w) && i > 0 && i+1 < len(all) && !in[i-1] && !in[i+1]
		if n := len(out); n > 0 && out[n-1].Marked == marked {
			out[n-1].Text += w
			continue
		}
		out = append(out, piece{w, marked})
	}
	return out
}
