package policy

import (
	"fmt"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Protected reports whether one of the patterns protects a path: see MatchesPattern.
func Protected(patterns []string, path string) (bool, error) {
	matches, err := MatchesPattern(patterns, path)
	if err != nil {
		return false, fmt.Errorf("policy.protect: %w", err)
	}
	return matches, nil
}

// MatchesPattern reports whether a path matches a pattern: a glob over the whole slash-separated path (`**`
// crosses folders). A pattern without a slash matches the file name in every folder. The match
// ignores case, as some file systems do.
func MatchesPattern(patterns []string, path string) (bool, error) {
	for _, pattern := range patterns {
		glob := strings.ToLower(strings.TrimPrefix(pattern, "/"))
		if !strings.Contains(pattern, "/") {
			glob = "**/" + glob
		}
		hit, err := doublestar.Match(glob, strings.ToLower(path))
		if err != nil {
			return false, fmt.Errorf("pattern %q: %w", pattern, err)
		}
		if hit {
			return true, nil
		}
	}
	return false, nil
}
