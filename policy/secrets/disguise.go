package secrets

import (
	"encoding/binary"
	"math/bits"
	"strings"
	"sync"
)

const (
	// letterGram is the number of letters of an indexed piece of a spelling (a gram).
	letterGram = 8
	// minBroken is the shortest interrupted sequence to report, in bytes.
	minBroken = 12
	// windowBytes is the number of bytes searched at once. maxBytesPerByte is the largest number of text bytes
	// for one byte of a value.
	windowBytes     = 128 << 10
	maxBytesPerByte = 16
)

// encodedFinder finds values whose letters and digits occur in order in a text, also encoded. Between them
// may be line ends, line prefixes or the separators of a dump.
type encodedFinder struct {
	filter      []uint64 // of the grams of all spellings
	hashShift   int
	places      []letterPlace
	firstPlaces map[uint64]int32 // the first place of a gram, counted from 1
	overlap     int              // bytes that successive windows share
	pool        sync.Pool
}

// letterPlace is the position of a gram in a spelling.
type letterPlace struct {
	*spelling
	offset int32
	next   int32 // place of the same gram; negative for none
}

func (place *letterPlace) gram() uint64 {
	return gram8(place.letters, int(place.offset))
}

// newEncodedFinder indexes all spellings of the values.
func newEncodedFinder(values []Value) *encodedFinder {
	d := &encodedFinder{overlap: shapeOverlap}
	for _, v := range values {
		d.overlap = max(d.overlap, maxBytesPerByte*len(v.Secret))
		for _, s := range spellings(v) {
			d.indexSpelling(s)
		}
	}
	size := max(10, bits.Len(uint(len(d.places)))-1)           // 32 bits and more for each gram
	d.filter, d.hashShift = make([]uint64, 1<<size), 64-6-size // a hash selects one of 1<<size words and 1 of its 64 bits
	d.firstPlaces = make(map[uint64]int32, len(d.places))
	for i := range d.places {
		place := &d.places[i]
		place.next = d.firstPlaces[place.gram()] - 1 // -1 for the first place of a gram
		d.firstPlaces[place.gram()] = int32(i) + 1
		word, mask := d.filterBit(place.gram())
		d.filter[word] |= mask
	}
	return d
}

// indexSpelling indexes the secret letters of a spelling. It indexes every gram of a short spelling, which may be
// scattered in small pieces. Every fourth gram of a longer one suffices, because the search looks at
// every gram of the text.
func (finder *encodedFinder) indexSpelling(s *spelling) {
	const shortLength, longStep = 64, 4
	step := 1
	if len(s.letters) > shortLength {
		step = longStep
	}
	first, last := s.firstSecret, s.endSecret-letterGram
	if first > last {
		first, last = 0, len(s.letters)-letterGram
	}
	for offset := first; offset <= last; offset += step {
		finder.places = append(finder.places, letterPlace{s, int32(offset), -1})
	}
}

// filterBit returns the index of a gram's word in the filter, and the mask of its bit.
func (finder *encodedFinder) filterBit(gram uint64) (word, mask uint64) {
	hash := gram * 0x9E3779B97F4A7C15 >> finder.hashShift
	return hash >> 6, 1 << (hash & 63)
}

// find calls found for each value, or part of one, in a text, except plain and uninterrupted ones.
func (finder *encodedFinder) find(text string, found func(finding)) {
	if len(finder.places) == 0 || len(text) < minLetters {
		return
	}
	window, _ := finder.pool.Get().(*letters)
	if window == nil {
		window = &letters{lastTraces: map[*spelling]lastTrace{}}
	}
	defer finder.pool.Put(window)
	for start := 0; ; start += windowBytes {
		end := min(len(text), start+windowBytes+finder.overlap)
		window.load(text[start:end])
		finder.findIn(window, func(f finding) {
			f.start, f.end = f.start+start, f.end+start
			found(f)
		})
		if end == len(text) {
			return
		}
	}
}

// findIn calls found for each value, or part of one, in the letters of one window. It looks up every gram
// of the window (letterGram letters, packed in a number), and skips the letters of a found value.
func (finder *encodedFinder) findIn(letters *letters, found func(finding)) {
	if len(letters.lower) < letterGram {
		return
	}
	clear(letters.lastTraces)
	gram := binary.LittleEndian.Uint64(append([]byte{0}, letters.lower[:letterGram-1]...)) // each step shifts one letter out, and one in
	for end := letterGram - 1; end < len(letters.lower); end++ {
		gram = gram>>8 | uint64(letters.lower[end])<<56
		word, mask := finder.filterBit(gram)
		if finder.filter[word]&mask == 0 {
			continue
		}
		best := finder.bestTrace(letters, gram, end+1-letterGram)
		if best.spelling == nil {
			continue
		}
		found(best.toFinding())
		last := best.textLast
		if !best.isComplete() { // a complete value may begin among the skipped letters
			last = best.unbrokenTo
		}
		for ; end < last; end++ {
			gram = gram>>8 | uint64(letters.lower[end+1])<<56
		}
	}
}

// bestTrace returns the best trace around a gram of a text: a complete value, or else the longest part.
// It returns the zero trace if no trace is significant.
func (finder *encodedFinder) bestTrace(letters *letters, gram uint64, textOffset int) trace {
	best := trace{}
	for i := finder.firstPlaces[gram] - 1; i >= 0; i = finder.places[i].next {
		place := finder.places[i]
		shift := textOffset - int(place.offset)
		if old, known := letters.lastTraces[place.spelling]; known && old.shift == shift && textOffset <= old.last {
			continue
		}
		candidate := traceAround(letters, place, textOffset)
		if candidate.isSignificant() && candidate.isLongerThan(best) {
			best = candidate
		}
		letters.lastTraces[place.spelling] = lastTrace{shift, candidate.unbrokenTo}
	}
	return best
}

// lastTrace is the end of the last trace of a spelling at a given shift.
type lastTrace struct{ shift, last int }

// finding locates a secret, or a part of a secret, in a text.
type finding struct {
	start, end int // in the text
	spelling   *spelling
	whole      bool
	part       string // the found part of the value, unless whole
}

// trace is a sequence of letters that a text and a spelling have in common.
type trace struct {
	text                        *letters
	spelling                    *spelling
	textFirst, textLast         int  // index in text.lower
	spellingFirst, spellingLast int  // index in spelling.letters; spellingLast is inclusive
	unbrokenTo                  int  // the last letter in the text before a skipped one
	gapsDiffer                  bool // some gaps differ from the spelling's
	hasLineEnds                 bool // some gaps contain line ends
	hasColumns                  bool // its lines continue with other columns
	spacing                     spacing
}

// spacing reports whether there are gaps between all letters of a line.
type spacing int

const (
	unknownSpacing spacing = iota
	tightSpacing
	wideSpacing
)

func (r *trace) length() int { return r.spellingLast - r.spellingFirst + 1 }

func (r *trace) isComplete() bool {
	return r.spellingFirst == 0 && r.spellingLast == len(r.spelling.letters)-1
}

// isLongerThan reports whether r is a better trace: a complete value before a part, and then the longer
// one. Any trace is better than the zero trace.
func (r *trace) isLongerThan(other trace) bool {
	switch {
	case other.spelling == nil:
		return true
	case r.isComplete() != other.isComplete():
		return r.isComplete()
	}
	return r.length() > other.length()
}

// isSignificant reports whether a trace is a value, or a part too long to match by chance.
func (r *trace) isSignificant() bool {
	s := r.spelling
	if s == nil {
		return false
	}
	isBroken := !s.numbers && (r.hasLineEnds || r.spacing == wideSpacing)
	switch {
	case s.plain && !r.gapsDiffer: // the search for plain values finds it
		return false
	case isBroken && r.spellingBytes(r.spellingFirst, r.spellingLast) < minBroken:
		return false
	case r.isComplete():
		return true
	}
	from, to := r.secretBounds()
	return s.minPart > 0 && from < to && r.spellingBytes(from, to-1) >= s.minPart
}

// secretBounds returns the bounds of the trace's letters, in the spelling, that belong to the value's secret
// part.
func (r *trace) secretBounds() (from, to int) {
	return max(r.spellingFirst, r.spelling.firstSecret), min(r.spellingLast+1, r.spelling.endSecret)
}

// toFinding returns the trace's bounds in the text. The bounds of a whole value include its characters
// other than letters at both ends. If lines have further columns, they include those of the last line.
func (r *trace) toFinding() finding {
	s, from := r.spelling, r.spellingFirst
	f := finding{spelling: s, whole: r.isComplete()}
	if !f.whole {
		first, last := r.secretBounds()
		from, f.part = first, s.valuePart(first, last)
	}
	f.start, f.end = int(r.text.offsets[r.textFirst+from-r.spellingFirst]), int(r.text.offsets[r.textLast])+1
	if f.whole {
		f.start -= len(commonEnd(r.text.text[:f.start], s.form[:s.offsets[0]]))
		f.end += len(commonStart(r.text.text[f.end:], s.form[s.offsets[len(s.offsets)-1]+1:]))
	}
	if r.hasColumns {
		rest := r.text.text[f.end:min(len(r.text.text), f.end+maxGap)]
		f.end += max(0, strings.IndexAny(rest+"\n", "\r\n"))
	}
	return f
}

// commonStart returns the common prefix of both texts.
func commonStart(text, other string) string {
	n := 0
	for n < len(text) && n < len(other) && text[n] == other[n] {
		n++
	}
	return text[:n]
}

// commonEnd returns the common suffix of both texts.
func commonEnd(text, other string) string {
	n := 0
	for n < len(text) && n < len(other) && text[len(text)-1-n] == other[len(other)-1-n] {
		n++
	}
	return text[len(text)-n:]
}
