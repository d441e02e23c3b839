package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
)

// Problem is one mistake in a layer.
type Problem struct {
	File       string `json:"-"`             // the layer, or the variable or flag that an assignment came from
	Line       int    `json:"line"`          // from 1; 0 where there is no file
	Column     int    `json:"column"`        // from 1, in characters
	Key        string `json:"key,omitempty"` // "limits.turns", "verify[0].run"; empty for a mistake of the file as a whole
	Message    string `json:"message"`
	Suggestion string `json:"suggestion,omitempty"` // likely correct text, or empty

	layer int // number of the layer with the mistake
}

// String returns one line: "bump.yml:3:5: limits.turn: unknown key; did you mean limits.turns?". It
// contains no control characters, even if the file does.
func (p Problem) String() string {
	text := makePrintable(p.Message)
	if p.Key != "" {
		text = makePrintable(p.Key) + ": " + text
	}
	if p.Suggestion != "" {
		text += "; did you mean " + makePrintable(p.Suggestion) + "?"
	}
	if p.File == "" {
		return text
	}
	place := makePrintable(p.File)
	if p.Line > 0 {
		place += fmt.Sprintf(":%d:%d", p.Line, p.Column)
	}
	return place + ": " + text
}

// Problems are all the mistakes of a configuration, layer by layer in the order of the lines.
type Problems []Problem

func (ps Problems) Error() string { return strings.Join(ProblemLines(ps), "\n") }

// ProblemLines returns the Problems in err, one a line. It returns nil if there are none.
func ProblemLines(err error) (lines []string) {
	problems, _ := errors.AsType[Problems](err)
	for _, p := range problems {
		lines = append(lines, p.String())
	}
	return lines
}

// MaxProblems limits the output for a hostile file.
const MaxProblems = 100

// add stores a mistake. A mistake that belongs to no layer has the layer number len(d.layers), so it sorts last.
// It stores one more than MaxProblems, so that Problems knows of more, and drops the rest.
func (d *Decoder) add(p Problem) {
	if len(d.problems) <= MaxProblems {
		d.problems = append(d.problems, p)
	}
}

// HasProblemBelow reports whether the key called name, or one below it, has a mistake. "" is the whole file.
func (d *Decoder) HasProblemBelow(name string) bool {
	return slices.ContainsFunc(d.problems, func(p Problem) bool {
		return p.Key == name || strings.HasPrefix(p.Key, name+".") || strings.HasPrefix(p.Key, name+"[")
	})
}

// Problems returns all mistakes, sorted by layer and line. It is nil without any.
func (d *Decoder) Problems() Problems {
	all := slices.Clone(d.problems)
	slices.SortStableFunc(all, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.layer, b.layer), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if len(all) > MaxProblems {
		last := &all[MaxProblems]
		last.Key, last.Suggestion, last.Message = "", "", fmt.Sprintf("more than %d mistakes; the rest is not shown", MaxProblems)
	}
	return all
}

// Err returns Problems as an error; nil for none.
func (d *Decoder) Err() error {
	if problems := d.Problems(); len(problems) > 0 {
		return problems
	}
	return nil
}

// makePrintable shortens text to 300 bytes and quotes it if it contains unprintable characters. These
// could move a terminal's cursor or break a line.
func makePrintable(text string) string {
	const longest = 300
	cut := clip.Bytes(text, longest)
	if strings.ContainsFunc(cut, func(r rune) bool { return !strconv.IsPrint(r) }) {
		quoted := strconv.Quote(cut)
		return quoted[1 : len(quoted)-1]
	}
	return cut
}
