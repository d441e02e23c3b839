package job

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/internal/clip"
)

// Problem is one mistake in a layer of a job.
type Problem struct {
	File       string `json:"-"`             // the layer, or the variable or flag that an assignment came from
	Line       int    `json:"line"`          // from 1; 0 where there is no file
	Column     int    `json:"column"`        // from 1, in characters
	Key        string `json:"key,omitempty"` // "limits.turns", "verify[0].run"; empty for a mistake of the file as a whole
	Message    string `json:"message"`
	Suggestion string `json:"suggestion,omitempty"` // what was probably meant, or empty
}

// String is one line, "bump.yml:3:5: limits.turn: unknown key; did you mean
// limits.turns?". It holds no control characters, whatever the file held.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(printable(p.File))
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
		}
		b.WriteString(": ")
	}
	if p.Key != "" {
		b.WriteString(printable(p.Key) + ": ")
	}
	b.WriteString(printable(p.Message))
	if p.Suggestion != "" {
		b.WriteString("; did you mean " + printable(p.Suggestion) + "?")
	}
	return b.String()
}

// Problems are all the mistakes of a job, layer by layer in the order of the
// lines. It is the error of [Load].
type Problems []Problem

func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// maxProblems bounds what a hostile file can make us print.
const maxProblems = 100

// report collects the problems of each layer. What concerns no layer comes last.
type report [][]Problem

func (r report) add(layer int, p Problem) {
	if layer < 0 {
		layer = len(r) - 1
	}
	if len(r[layer]) <= maxProblems {
		r[layer] = append(r[layer], p)
	}
}

// mentions reports whether a problem of the key name or one below it was found;
// the empty name is that of a file as a whole.
func (r report) mentions(name string) bool {
	for _, found := range r {
		if slices.ContainsFunc(found, func(p Problem) bool {
			return p.Key == name || strings.HasPrefix(p.Key, name+".") || strings.HasPrefix(p.Key, name+"[")
		}) {
			return true
		}
	}
	return false
}

// mentionsExactly is like mentions, but for what is told of a key itself.
func (r report) mentionsExactly(name string) bool {
	for _, found := range r {
		if slices.ContainsFunc(found, func(p Problem) bool { return p.Key == name }) {
			return true
		}
	}
	return false
}

func (r report) problems() Problems {
	var all Problems
	for _, found := range r {
		slices.SortStableFunc(found, func(a, b Problem) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
		})
		all = append(all, found...)
	}
	if len(all) > maxProblems {
		last := all[maxProblems]
		last.Key, last.Suggestion = "", ""
		last.Message = fmt.Sprintf("more than %d mistakes; the rest is not shown", maxProblems)
		return append(all[:maxProblems:maxProblems], last)
	}
	return all
}

// printable is text with everything quoted that could move a terminal's cursor
// or break a line, and with its length bounded.
func printable(text string) string {
	const longest = 300
	cut := clip.Bytes(text, longest)
	if strings.ContainsFunc(cut, func(r rune) bool { return !strconv.IsPrint(r) }) {
		quoted := strconv.Quote(cut)
		return quoted[1 : len(quoted)-1]
	}
	return cut
}
