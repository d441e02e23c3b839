package editformat

import (
	"strings"
	"unicode"

	"github.com/agent-ci/agent-ci/gitops/v4a"
)

// pass is one way to compare lines of a file with those of a block.
type pass int

const (
	exact    pass = iota
	trailing      // blanks at the end do not count
	indented      // and all lines stand further in, or further out, by the same
	passes
)

// normal is what of a line is looked up in a pass.
func (p pass) normal(text string) string {
	switch p {
	case trailing:
		return strings.TrimRightFunc(text, unicode.IsSpace)
	case indented:
		return strings.TrimSpace(text)
	}
	return text
}

// index says where in a file the lines are that blocks look for. Lines that no
// block looks for are not in it.
type index struct {
	words map[string]int32 // those of the seeker
	of    []int32          // the word that each line of the file is, or 0
	at    [][]int32        // where each word is; some of those lines may be gone
	there []int            // how many of those are not
}

func (ix *index) add(id int32, text string) {
	for len(ix.of) <= int(id) {
		ix.of = append(ix.of, 0)
	}
	word := ix.words[text]
	if word == 0 {
		return
	}
	ix.of[id] = word
	ix.at[word] = append(ix.at[word], id)
	ix.there[word]++
}

func (ix *index) remove(id int32) { ix.there[ix.of[id]]-- }

// seeker looks for the lines of blocks in files. It knows of all blocks from the
// beginning, so that one walk through a file is enough for them.
type seeker struct {
	wanted []string                 // the lines that any block looks for
	words  [passes]map[string]int32 // a number for each of them, from 1, as it counts in a pass
	steps  int                      // comparisons that are left
}

// allSteps bounds the search for lines that all occur often, in a row never. It is
// some tenths of a second.
const allSteps = 1 << 26

func newSeeker(edits []Edit) *seeker {
	s := &seeker{steps: allSteps}
	for _, e := range edits {
		for _, lines := range append([][]v4a.Line{e.lines, e.raw}, e.pieces...) {
			s.wanted = append(s.wanted, oldTexts(lines)...)
		}
	}
	return s
}

// oldTexts are the lines that a file is to have.
func oldTexts(lines []v4a.Line) []string {
	var texts []string
	for _, l := range lines {
		if l.Kind != v4a.Insert {
			texts = append(texts, l.Text)
		}
	}
	return texts
}

func (s *seeker) index(f *file, p pass) *index {
	if f.seeks[p] != nil {
		return f.seeks[p]
	}
	ix := &index{words: s.numbered(p), of: make([]int32, 0, len(f.lines))}
	ix.at, ix.there = make([][]int32, len(ix.words)+1), make([]int, len(ix.words)+1)
	for id := range f.lines {
		if id == 0 || f.lines[id].gone {
			ix.of = append(ix.of, 0)
			continue
		}
		ix.add(int32(id), p.normal(f.lines[id].text))
	}
	f.seeks[p] = ix
	return ix
}

// numbered numbers the lines that are looked for.
func (s *seeker) numbered(p pass) map[string]int32 {
	if s.words[p] != nil {
		return s.words[p]
	}
	words := make(map[string]int32, len(s.wanted))
	for _, text := range s.wanted {
		// A byte order mark belongs to no line of a file.
		for _, spelled := range []string{text, strings.TrimPrefix(text, byteOrderMark)} {
			if spelled = p.normal(spelled); words[spelled] == 0 {
				words[spelled] = int32(len(words) + 1)
			}
		}
	}
	s.words[p] = words
	return words
}

// place is where in a file lines are: the first of them, and what stands before
// each in the file that does not in the block.
type place struct {
	first  int32
	offset string
}

// fewPlaces is how many places are told of lines that are in more than one.
const fewPlaces = 3

// find returns the places of lines in a file, no more than a few.
func (s *seeker) find(f *file, texts []string, p pass, margin string) []place {
	if p == indented && isBlank(texts) || len(texts) > f.there {
		return nil
	}
	s.steps -= len(texts) + 16
	ix := s.index(f, p)
	words := make([]int32, len(texts))
	rarest := 0
	for i, text := range texts {
		words[i] = ix.words[p.normal(text)]
		if ix.there[words[i]] < ix.there[words[rarest]] {
			rarest = i
		}
	}
	var places []place
	at := ix.at[words[rarest]]
	if len(at) > 2*ix.there[words[rarest]]+8 {
		at = s.compacted(f, ix, words[rarest])
	}
	for _, id := range at {
		if s.steps--; s.steps < 0 || len(places) == fewPlaces {
			break
		}
		if f.lines[id].gone {
			continue
		}
		at, ok := s.around(f, ix, words, rarest, id)
		if ok && p == indented {
			at.offset, ok = s.offset(f, at.first, texts, margin)
		}
		if ok {
			places = append(places, at)
		}
	}
	return places
}

// compacted leaves lines that are gone out of an index.
func (s *seeker) compacted(f *file, ix *index, word int32) []int32 {
	s.steps -= len(ix.at[word])
	var there []int32
	for _, id := range ix.at[word] {
		if !f.lines[id].gone {
			there = append(there, id)
		}
	}
	ix.at[word] = there
	return there
}

// around reports whether words stand around a line that is one of them, and where
// the first one is.
func (s *seeker) around(f *file, ix *index, words []int32, at int, id int32) (place, bool) {
	first := id
	for i := at - 1; i >= 0; i-- {
		s.steps--
		first = f.lines[first].prev
		if first == 0 || ix.of[first] != words[i] {
			return place{}, false
		}
	}
	for _, word := range words[at+1:] {
		s.steps--
		id = f.lines[id].next
		if id == 0 || ix.of[id] != word {
			return place{}, false
		}
	}
	return place{first: first}, true
}

// offset is what stands before each line of a file that does not before that of a
// block, the margin of the block aside: one and the same for all.
func (s *seeker) offset(f *file, id int32, texts []string, margin string) (string, bool) {
	offset, found := "", false
	for _, text := range texts {
		have := trailing.normal(f.lines[id].text)
		id = f.lines[id].next
		s.steps -= len(have) + 8
		if have == "" {
			continue
		}
		more, ok := strings.CutSuffix(have, strings.TrimPrefix(trailing.normal(text), margin))
		if !ok || found && more != offset {
			return "", false
		}
		offset, found = more, true
	}
	return offset, found
}

// margin is the blanks that all lines begin with.
func margin(lines []v4a.Line) string {
	common, found := "", false
	for _, l := range lines {
		text := strings.TrimLeftFunc(l.Text, unicode.IsSpace)
		if text == "" {
			continue
		}
		blanks := l.Text[:len(l.Text)-len(text)]
		if !found {
			common, found = blanks, true
		}
		same := 0
		for same < min(len(common), len(blanks)) && common[same] == blanks[same] {
			same++
		}
		common = common[:same]
	}
	return common
}
