package v4a

import (
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/merge"
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
	for _, h := range merge.Hunks(old, now) {
		for _, line := range old[at:h.Base0] {
			s.skip(line)
		}
		s.replace(old[h.Base0:h.Base1], now[h.New0:h.New1])
		at = h.Base1
	}
}
