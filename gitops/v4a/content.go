package v4a

import "strings"

// content is a file's text with the memory of what it was made from, so that
// a diff follows from the edits and needs no search.
type content struct {
	text   string
	base   string  // the text on disk that it started as
	pieces []piece // the text, in order
}

// piece is a range of the base, or new text.
type piece struct {
	from, to int
	text     string // new text, when from is negative
}

func (p piece) len() int {
	if p.from < 0 {
		return len(p.text)
	}
	return p.to - p.from
}

// slice returns a part of a piece.
func (p piece) slice(from, to int) piece {
	if p.from < 0 {
		return piece{from: -1, text: p.text[from:to]}
	}
	return piece{from: p.from + from, to: p.from + to}
}

func unchanged(base string) *content {
	return &content{text: base, base: base, pieces: []piece{{from: 0, to: len(base)}}}
}

// rewritten is a file whose text is new from end to end.
func rewritten(base, text string) *content {
	return &content{text: text, base: base, pieces: []piece{{from: -1, text: text}}}
}

// edited applies edits, which are in order and apart.
func (c *content) edited(edits []edit) *content {
	if len(edits) == 0 {
		return c
	}
	return &content{text: splice(c.text, edits), base: c.base, pieces: splicePieces(c.pieces, edits)}
}

func splice(old string, edits []edit) string {
	size := len(old)
	for _, e := range edits {
		size += len(e.text) - (e.to - e.from)
	}
	var b strings.Builder
	b.Grow(size)
	at := 0
	for _, e := range edits {
		b.WriteString(old[at:e.from])
		b.WriteString(e.text)
		at = e.to
	}
	b.WriteString(old[at:])
	return b.String()
}

func splicePieces(old []piece, edits []edit) []piece {
	r := pieceReader{pieces: old}
	var out []piece
	for _, e := range edits {
		out = r.read(out, e.from)
		r.skip(e.to)
		if e.text != "" {
			out = append(out, piece{from: -1, text: e.text})
		}
	}
	return r.rest(out)
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
	n := min(head.len()-r.taken, limit)
	p := head.slice(r.taken, r.taken+n)
	r.at += n
	r.taken += n
	if r.taken == head.len() {
		r.pieces, r.taken = r.pieces[1:], 0
	}
	return p
}

// rest appends all that is left.
func (r *pieceReader) rest(out []piece) []piece {
	for _, p := range r.pieces {
		out = append(out, p.slice(r.taken, p.len()))
		r.taken = 0
	}
	return out
}
