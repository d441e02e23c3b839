package shell

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// mostBraced is how many words are made of one by its braces.
const mostBraced = 64

// wordsOf are the words that a word of a script becomes: several where there are
// lists in braces. A sequence, or more than can be looked at, is one word that is
// not known.
func wordsOf(w *syntax.Word) []Word {
	split := &syntax.Word{Parts: slices.Clone(w.Parts)} // the script is walked on, by what knows no braces
	if !syntax.SplitBraces(split) {
		return []Word{wordOf(w)}
	}
	parts, ok := alternatives(split.Parts)
	if !ok {
		return []Word{wordOf(w)}
	}
	words := make([]Word, 0, len(parts))
	for _, p := range parts {
		words = append(words, wordOf(&syntax.Word{Parts: p}))
	}
	return words
}

// alternatives are the parts with one element for each list in braces, in the
// order of the shell. It is false when there are too many.
func alternatives(parts []syntax.WordPart) (all [][]syntax.WordPart, ok bool) {
	all = [][]syntax.WordPart{nil}
	for _, part := range parts {
		next, ok := choices(part)
		if !ok || len(all)*len(next) > mostBraced {
			return nil, false
		}
		var longer [][]syntax.WordPart
		for _, before := range all {
			for _, choice := range next {
				longer = append(longer, append(before[:len(before):len(before)], choice...))
			}
		}
		all = longer
	}
	return all, true
}

// choices are what one part can be.
func choices(part syntax.WordPart) (all [][]syntax.WordPart, ok bool) {
	list, isBraces := part.(*syntax.BraceExp)
	if !isBraces || list.Sequence {
		return [][]syntax.WordPart{{part}}, true
	}
	for _, element := range list.Elems {
		more, ok := alternatives(element.Parts)
		if !ok || len(all)+len(more) > mostBraced {
			return nil, false
		}
		all = append(all, more...)
	}
	return all, true
}
