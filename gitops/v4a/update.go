package v4a

import (
	"context"
	"slices"
	"strings"
)

// manySections is how many sections for one file in a row are worth an index of
// the file, to place them without making the text that each leaves behind.
const manySections = 8

// Updated applies sections that all update the file which has this content, one
// after the other. The notes tell who wrote the patch what to look at although
// it fits, a sentence each. An error is a [*MatchError] or that of ctx.
func (c *Content) Updated(ctx context.Context, sections []Section) (*Content, []string, error) {
	var notes []string
	alone := 0 // how many sections are placed one by one before several are tried together again
	for ; len(sections) > 0; alone-- {
		done := 0
		if alone <= 0 && len(sections) >= manySections && isPlain(c.text) {
			c, done = c.updatedTogether(ctx, sections)
			if done < manySections {
				alone = manySections + 1 // this round counts
			}
		}
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		if done == 0 {
			updated, said, err := c.updatedAlone(ctx, &sections[0])
			if err != nil {
				return nil, nil, err
			}
			c, notes, done = updated, append(notes, said...), 1
		}
		sections = sections[done:]
	}
	return c, notes, nil
}

func (c *Content) updatedAlone(ctx context.Context, s *Section) (*Content, []string, error) {
	t := newText(c.text)
	if s.bare {
		t.splitBare(s.ending)
	}
	placed, notes, err := place(ctx, t, s)
	if err != nil {
		return nil, nil, err
	}
	return c.edited(edits(t, placed, s.bare)), notes, nil
}

// updatedTogether applies the first sections that do not depend on each other,
// and returns how many; none when something is wrong, which applying them one by
// one then shows. None of them is of a bare diff, which has one section.
func (c *Content) updatedTogether(ctx context.Context, sections []Section) (*Content, int) {
	t := newText(c.text)
	f := newFinder(ctx, t)
	j := &jointPlacer{finder: f, near: map[int]bool{}, added: map[string]bool{}, pairs: map[[2]string]bool{}}
	placers := make([]*placer, len(sections))
	for i := range sections {
		placers[i] = newPlacer(f, &sections[i])
	}
	f.index(exact)
	var placed []placement
	done := 0
	for _, pl := range placers {
		of, ok := j.place(pl)
		if !ok {
			break
		}
		for _, p := range of {
			j.note(p)
		}
		placed = append(placed, of...)
		done++
	}
	slices.SortStableFunc(placed, func(a, b placement) int { return a.at - b.at })
	return c.edited(edits(t, placed, false)), done
}

// isPlain reports whether lines stay lines wherever others go or come: a CR alone
// could end up before a LF. A byte order mark may go, too.
func isPlain(text string) bool {
	return strings.Count(text, "\r") == strings.Count(text, "\r\n") && !strings.HasPrefix(text, byteOrderMark)
}
