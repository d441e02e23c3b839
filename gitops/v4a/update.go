package v4a

import "context"

// Updated applies the sections for one file in order. It returns notes about doubtful places, one
// sentence each. An error is a [*MatchError] or ctx's.
func (c *Content) Updated(ctx context.Context, sections []Section) (*Content, []string, error) {
	var notes []string
	for i := range sections {
		updated, more, err := c.updated(ctx, &sections[i])
		if err != nil {
			return nil, nil, err
		}
		c, notes = updated, append(notes, more...)
	}
	return c, notes, nil
}

// updated applies one section.
func (c *Content) updated(ctx context.Context, s *Section) (*Content, []string, error) {
	t := newText(c.text)
	if s.isBare {
		t.splitBare(s.ending)
	}
	placed, notes, err := place(ctx, t, s)
	if err != nil {
		return nil, nil, err
	}
	return c.WithText(applyHunks(t, placed, s.isBare)), notes, nil
}
