package secrets

import (
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
)

const (
	// windowSize is how many new bytes are searched at once.
	windowSize = 64 << 10
	// shapeOverlap is the overlap of successive windows, in bytes. It exceeds the length needed for
	// any shape.
	shapeOverlap = 4 << 10
)

// FindNew returns the sorted names of values and shapes in from, each once. It does not search for
// fragments. It omits a token that before also contains, since the text was only moved. before may be
// nil.
func (r *Redactor) FindNew(from, before io.Reader) ([]string, error) {
	if r == nil {
		return nil, nil
	}
	known := map[string]bool{}
	if before != nil {
		err := r.searchWindows(before, func(text string) {
			for _, s := range shapesIn(text) {
				known[text[s.start:s.end]] = true
			}
		})
		if err != nil {
			return nil, err
		}
	}
	found := map[string]bool{}
	err := r.searchWindows(from, func(text string) {
		r.addValueNames(found, text)
		for _, s := range shapesIn(text) {
			if !known[text[s.start:s.end]] {
				found[s.replacement[len("[secret "):len(s.replacement)-1]] = true
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// addValueNames adds the names of the values in text to found.
func (r *Redactor) addValueNames(found map[string]bool, text string) {
	for _, f := range r.forms {
		if !found[f.name] && strings.Contains(text, f.text) {
			found[f.name] = true
		}
	}
	if r.encodedFinder != nil {
		r.encodedFinder().find(text, func(f finding) {
			if f.whole {
				found[f.spelling.name] = true
			}
		})
	}
}

// searchWindows reads from in overlapping pieces and calls search with each. The overlap is longer than any
// secret.
func (r *Redactor) searchWindows(from io.Reader, search func(text string)) error {
	overlap := shapeOverlap
	if len(r.forms) > 0 {
		overlap = max(r.encodedFinder().overlap, len(r.forms[0].text)-1) // the longest
	}
	window := make([]byte, 0, overlap+windowSize)
	for {
		n, err := io.ReadFull(from, window[len(window):len(window)+windowSize])
		window = window[:len(window)+n]
		search(string(window))
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
		window = append(window[:0], window[max(0, len(window)-overlap):]...)
	}
}
