package v4a

import "context"

// Updated applies a section. It returns notes about doubtful places, one sentence each. An error is a
// [*MatchError] or ctx's.
func (c *Content) Updated(ctx context.Context, s *Section) (*Content, []string, error) {
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
