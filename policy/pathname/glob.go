package pathname

import (
	"errors"

	"github.com/bmatcuk/doublestar/v4"
)

// maxAlternatives limits the texts that the braces of a glob stand for: doublestar tries all of them.
const maxAlternatives = 1000

// ErrAlternatives is the error for a glob whose braces stand for too many texts.
var ErrAlternatives = errors.New("its braces stand for too many alternatives")

// CheckGlob returns doublestar.ErrBadPattern for an invalid glob, and ErrAlternatives for one with more than
// maxAlternatives alternatives. Globs of others must be checked: "{a,b}" forty times would be compared for years.
func CheckGlob(glob string) error {
	total, open := 1, []int(nil) // open has the alternatives of each open brace
	for i := 0; i < len(glob) && total <= maxAlternatives; i++ {
		switch glob[i] {
		case '\\':
			i++
		case '{':
			open = append(open, 1)
		case ',':
			if len(open) > 0 {
				open[len(open)-1]++
			}
		case '}':
			if len(open) > 0 {
				total *= max(2, open[len(open)-1]) // one alternative takes a step too
				open = open[:len(open)-1]
			}
		}
	}
	if total > maxAlternatives {
		return ErrAlternatives
	}
	if !doublestar.ValidatePattern(glob) {
		return doublestar.ErrBadPattern
	}
	return nil
}

// MatchGlob reports whether a glob matches a slash-separated path. It returns the errors of CheckGlob.
func MatchGlob(glob, path string) (bool, error) {
	if err := CheckGlob(glob); err != nil {
		return false, err
	}
	return doublestar.MatchUnvalidated(glob, path), nil
}
