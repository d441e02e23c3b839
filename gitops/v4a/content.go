package v4a

import (
	"slices"
	"strings"
)

// Content is the text of a file. It remembers which text it started as, so that
// a diff follows from the edits and needs no search. A content never changes:
// its methods return others.
type Content struct {
	text   string
	base   string  // the text that it started as
	pieces []piece // the text, in order
}

// piece is a part of the base, or new text.
type piece struct {
	at   int // where it stands in the base; negative when it is new
	text string
}

func (p piece) slice(from, to int) piece {
	if p.at >= 0 {
		p.at += from
	}
	p.text = p.text[from:to]
	return p
}

// NewContent is a text to start with; that of a file which is not there is empty.
func NewContent(text string) *Content {
	return &Content{text: text, base: text, pieces: []piece{{text: text}}}
}

func (c *Content) Text() string { return c.text }

// Changed reports whether the text is another than the one that it started as.
func (c *Content) Changed() bool { return c.text != c.base }

// Rewritten replaces the text from end to end.
func (c *Content) Rewritten(text string) *Content {
	return &Content{text: text, base: c.base, pieces: []piece{{at: -1, text: text}}}
}

// Similarity is how much of the larger text is common to both, in percent.
func (c *Content) Similarity() int {
	kept := 0
	for _, p := range c.pieces {
		if p.at >= 0 {
			kept += len(p.text)
		}
	}
	larger := max(len(c.base), len(c.text))
	if larger == 0 {
		return 100
	}
	return kept * 100 / larger
}

// edited applies edits, which are in order and apart.
func (c *Content) edited(edits []edit) *Content {
	if len(edits) == 0 {
		return c
	}
	pieces := c.spliced(edits)
	return &Content{text: joined(pieces), base: c.base, pieces: pieces}
}

func (c *Content) spliced(edits []edit) []piece {
	rest, at := slices.Clone(c.pieces), 0
	var out, taken []piece
	for _, e := range edits {
		taken, rest = cut(rest, e.from-at)
		out = append(out, taken...)
		if e.text != "" {
			out = append(out, piece{at: -1, text: e.text})
		}
		_, rest = cut(rest, e.to-e.from)
		at = e.to
	}
	return append(out, rest...)
}

// cut takes so many bytes off the left of pieces, which it may change.
func cut(pieces []piece, size int) (taken, rest []piece) {
	for size > 0 {
		head := pieces[0]
		n := min(len(head.text), size)
		taken = append(taken, head.slice(0, n))
		pieces[0] = head.slice(n, len(head.text))
		if n == len(head.text) {
			pieces = pieces[1:]
		}
		size -= n
	}
	return taken, pieces
}

func joined(pieces []piece) string {
	size := 0
	for _, p := range pieces {
		size += len(p.text)
	}
	var b strings.Builder
	b.Grow(size)
	for _, p := range pieces {
		b.WriteString(p.text)
	}
	return b.String()
}
