package v4a

import (
	"slices"
	"strings"
)

// Replaced has another text from end to end, as [Content.Rewritten] has, of which the lines that
// both have stay: a diff shows what differs, and no more.
func (c *Content) Replaced(text string) *Content {
	old, now := lines(c.text), lines(text)
	s := &splitter{new: text}
	for len(old) > 0 || len(now) > 0 {
		if len(old) > 0 && len(now) > 0 && old[0] == now[0] {
			s.skip(old[0])
			old, now = old[1:], now[1:]
			continue
		}
		gone, came, near := resync(old, now)
		if !near {
			s.hunks(old, now)
			break
		}
		s.replace(old[:gone], now[:came])
		old, now = old[gone:], now[came:]
	}
	return c.edited(s.edits)
}

func lines(text string) []string {
	all := make([]string, 0, strings.Count(text, "\n")+1)
	return slices.AppendSeq(all, strings.Lines(text))
}

const (
	nearby = 60 // lines of both texts together within which a difference is expected to end
	sure   = 3  // equal lines by which its end is known
)

// resync finds where two texts that differ from their first line on are equal again, without a look
// at all of them: so the time that many small differences take grows with their number alone.
func resync(old, now []string) (gone, came int, near bool) {
	for both := 1; both <= nearby; both++ {
		for gone := max(0, both-len(now)); gone <= min(both, len(old)); gone++ {
			if inStep(old[gone:], now[both-gone:]) {
				return gone, both - gone, true
			}
		}
	}
	return 0, 0, false
}

func inStep(old, now []string) bool {
	if len(old) < sure || len(now) < sure {
		return slices.Equal(old, now)
	}
	return slices.Equal(old[:sure], now[:sure])
}

// splitter makes edits of lines, from the beginning of two texts on.
type splitter struct {
	new       string
	at, newAt int
	edits     []edit
}

func (s *splitter) skip(line string) {
	s.at += len(line)
	s.newAt += len(line)
}

func (s *splitter) replace(gone, came []string) {
	from, newFrom := s.at, s.newAt
	for _, line := range gone {
		s.at += len(line)
	}
	for _, line := range came {
		s.newAt += len(line)
	}
	s.edits = append(s.edits, edit{from, s.at, s.new[newFrom:s.newAt]})
}

// hunks compares what is left of both texts as a whole.
func (s *splitter) hunks(old, now []string) {
	at := 0
	for _, h := range hunksOf(old, now) {
		for _, line := range old[at:h.base0] {
			s.skip(line)
		}
		s.replace(old[h.base0:h.base1], now[h.new0:h.new1])
		at = h.base1
	}
}

// Replacing is the section of a text in a file that gives way to another; the lines that
// both begin and end with stay.
func Replacing(path, old, now string) Section {
	gone, came := lines(old), lines(now)
	same := func(text string) Line { return Line{Keep, strings.TrimSuffix(text, "\n")} }
	var before, changed, behind []Line
	for len(gone) > 0 && len(came) > 0 && gone[0] == came[0] {
		before = append(before, same(gone[0]))
		gone, came = gone[1:], came[1:]
	}
	for len(gone) > 0 && len(came) > 0 && gone[len(gone)-1] == came[len(came)-1] {
		behind = append(behind, same(gone[len(gone)-1]))
		gone, came = gone[:len(gone)-1], came[:len(came)-1]
	}
	for _, text := range gone {
		changed = append(changed, Line{Remove, strings.TrimSuffix(text, "\n")})
	}
	for _, text := range came {
		changed = append(changed, Line{Insert, strings.TrimSuffix(text, "\n")})
	}
	slices.Reverse(behind)
	return Section{Op: Update, Path: path, Hunks: []Hunk{{Lines: slices.Concat(before, changed, behind)}}}
}
