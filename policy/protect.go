package policy

import (
	"fmt"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Protected gives the paths that one of the patterns protects. A pattern is a
// glob over the whole slash-separated path (`**` crosses folders); one without
// a slash protects files of that name in every folder. Case is ignored: some
// file systems do.
func Protected(patterns, paths []string) ([]string, error) {
	var protected []string
	for _, path := range paths {
		for _, pattern := range patterns {
			hit, err := protects(pattern, path)
			if err != nil {
				return nil, err
			}
			if hit {
				protected = append(protected, path)
				break
			}
		}
	}
	return protected, nil
}

func protects(pattern, path string) (bool, error) {
	glob := strings.ToLower(strings.TrimPrefix(pattern, "/"))
	if !strings.Contains(pattern, "/") {
		glob = "**/" + glob
	}
	hit, err := doublestar.Match(glob, strings.ToLower(path))
	if err != nil {
		return false, fmt.Errorf("policy.protect: pattern %q: %w", pattern, err)
	}
	return hit, nil
}
