package v4a

import "context"

// Update applies a section to the content of a file. It returns the new content, and notes about doubtful
// places, one sentence each. An error is a [*MatchError] or ctx's.
func (s *Section) Update(ctx context.Context, content string) (string, []string, error) {
	t := newText(content)
	if s.isBare {
		t.splitBare(s.ending)
	}
	placed, notes, err := placeHunks(ctx, t, s)
	if err != nil {
		return "", nil, err
	}
	return applyHunks(t, placed, s.isBare), notes, nil
}
