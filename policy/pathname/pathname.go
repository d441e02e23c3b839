// Package pathname compares paths by their text alone. It looks at no file and follows no link.
package pathname

import (
	"path/filepath"
	"slices"
	"strings"
)

// Longest is the largest length of a path that commands can open, in bytes: PATH_MAX without the final zero byte.
const Longest = 1<<12 - 1

// Deepest is the largest number of parts of a path. It bounds the work and the open files that a hostile
// tree costs.
const Deepest = 256

// IsTooDeep reports whether a slash-separated path has more than Deepest parts.
func IsTooDeep(path string) bool { return strings.Count(path, "/") >= Deepest }

// Below returns path relative to folder, or "." for folder itself. It reports false for a path outside
// of folder, and if only one of the two is absolute. Unlike filepath.Rel it makes no text of a path
// outside, because a hostile path is compared with hundreds of folders.
func Below(folder, path string) (rel string, ok bool) {
	folder, path = filepath.Clean(folder), filepath.Clean(path)
	if path == folder {
		return ".", true
	}
	if folder != "." {
		inside, ok := strings.CutPrefix(path, strings.TrimSuffix(folder, "/"))
		if !ok || inside == "" || inside[0] != '/' {
			return "", false
		}
		path = inside[1:]
	}
	return path, filepath.IsLocal(path)
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

// MeansDotGit reports whether some file system treats a path element as ".git", or as a path with
// such an element. HFS+ ignores some characters of a name. NTFS ignores final blanks and dots and the
// text after a colon, treats "\" as a separator, and knows ".git" as "git~1". git has the same rules
// (core.protectHFS and core.protectNTFS).
func MeansDotGit(element string) bool {
	for part := range strings.SplitSeq(element, `\`) {
		part = strings.Map(withoutIgnored, part)
		part, _, _ = strings.Cut(part, ":")
		part = strings.TrimRight(part, " .")
		if strings.EqualFold(part, ".git") || strings.EqualFold(part, "git~1") {
			return true
		}
	}
	return false
}

// withoutIgnored drops the characters that HFS+ ignores in names.
func withoutIgnored(r rune) rune {
	switch {
	case r >= 0x200C && r <= 0x200F, r >= 0x202A && r <= 0x202E, r >= 0x206A && r <= 0x206F, r == 0xFEFF:
		return -1
	}
	return r
}
