package policy

import (
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/policy/pathname"
)

// Protected reports whether a path matches one of the patterns of policy.protect: see MatchesPattern.
func Protected(patterns []string, path string) (matches bool, err error) {
	matches, err = MatchesPattern(patterns, path)
	if err != nil {
		return false, fmt.Errorf("policy.protect: %w", err)
	}
	return matches, nil
}

// MatchesPattern reports whether a slash-separated path matches one of the patterns. A pattern is a
// glob for the whole path; `**` crosses folders. A pattern without a slash matches the file name in
// every folder. The match ignores case, as some file systems do.
func MatchesPattern(patterns []string, path string) (matches bool, err error) {
	for _, pattern := range patterns {
		glob := strings.ToLower(strings.TrimPrefix(pattern, "/"))
		if !strings.Contains(pattern, "/") {
			glob = "**/" + glob
		}
		matches, err = pathname.MatchGlob(glob, strings.ToLower(path))
		if err != nil {
			return false, fmt.Errorf("pattern %q: %w", pattern, err)
		}
		if matches {
			return true, nil
		}
	}
	return false, nil
}
