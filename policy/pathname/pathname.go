// Package pathname compares paths by their text alone. It looks at no file and follows no link.
package pathname

import (
	"path/filepath"
	"slices"
)

// Below returns path relative to folder, or "." for folder itself. It reports false for a path outside
// of folder, and if only one of the two is absolute.
func Below(folder, path string) (rel string, ok bool) {
	rel, err := filepath.Rel(folder, path)
	return rel, err == nil && filepath.IsLocal(rel)
}

// IsInAny reports whether path is one of folders, or below one.
func IsInAny(path string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		_, ok := Below(folder, path)
		return ok
	})
}

// Overlap reports whether two paths are the same, or one is below the other.
func Overlap(a, b string) bool { return IsInAny(a, b) || IsInAny(b, a) }
