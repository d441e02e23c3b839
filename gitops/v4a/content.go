package v4a

import "strings"

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

// slice returns a part of a piece.
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
	r := pieceReader{pieces: c.pieces}
	var out []piece
	for _, e := range edits {
		out = r.read(out, e.from)
		r.skip(e.to)
		if e.text != "" {
			out = append(out, piece{at: -1, text: e.text})
		}
	}
	return r.read(out, len(c.text))
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

// pieceReader takes pieces off from the left.
type pieceReader struct {
	pieces []piece
	taken  int // of the first piece
	at     int // how many bytes were taken in all
}

// read appends what lies between the last position and to.
func (r *pieceReader) read(out []piece, to int) []piece {
	for r.at < to {
		out = append(out, r.take(to-r.at))
	}
	return out
}

// skip passes over what lies between the last position and to.
func (r *pieceReader) skip(to int) {
	for r.at < to {
		r.take(to - r.at)
	}
}

// take removes at most limit bytes, all of one piece.
func (r *pieceReader) take(limit int) piece {
	head := r.pieces[0]
	n := min(len(head.text)-r.taken, limit)
	p := head.slice(r.taken, r.taken+n)
	r.at += n
	r.taken += n
	if r.taken == len(head.text) {
		r.pieces, r.taken = r.pieces[1:], 0
	}
	return p
}
