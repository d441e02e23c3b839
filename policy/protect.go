package policy

import (
	"fmt"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Protected says whether one of the patterns protects a path. A pattern is a
// glob over the whole slash-separated path (`**` crosses folders); one without
// a slash protects files of that name in every folder. Case is ignored: some
// file systems do.
func Protected(patterns []string, path string) (bool, error) {
	for _, pattern := range patterns {
		glob := strings.ToLower(strings.TrimPrefix(pattern, "/"))
		if !strings.Contains(pattern, "/") {
			glob = "**/" + glob
		}
		hit, err := doublestar.Match(glob, strings.ToLower(path))
		if err != nil {
			return false, fmt.Errorf("policy.protect: pattern %q: %w", pattern, err)
		}
		if hit {
			return true, nil
		}
	}
	return false, nil
}
