package objects

import (
	"strings"
	"unicode"
)

// ValidName says whether name may be part of a path in a tree. Names that some
// file system takes for ".git" may not, whatever the one here does: ".GIT",
// ".git." and "git~1" (NTFS), ".g\u200cit" (HFS+). These are the rules that git
// checks with core.protectNTFS and core.protectHFS.
func ValidName(name string) bool {
	switch name {
	case "", ".", "..":
		return false
	}
	if strings.ContainsAny(name, "/\x00") {
		return false
	}
	return !meansDotGit(name)
}

func meansDotGit(name string) bool {
	if strings.EqualFold(withoutIgnorable(name), ".git") {
		return true
	}
	for part := range strings.SplitSeq(name, `\`) { // which ends a folder's name there
		if meansDotGitOnNTFS(part) {
			return true
		}
	}
	return false
}

func meansDotGitOnNTFS(name string) bool {
	for _, form := range [...]string{".git", "git~1"} {
		if len(name) < len(form) || !strings.EqualFold(name[:len(form)], form) {
			continue
		}
		rest := strings.TrimLeft(name[len(form):], " .")
		if rest == "" || rest[0] == '\\' || rest[0] == ':' {
			return true
		}
	}
	return false
}

// withoutIgnorable drops the code points that HFS+ passes over in comparing
// names.
func withoutIgnorable(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		case r == unicode.ReplacementChar:
			return r
		}
		return r
	}, name)
}

// ValidPath says whether all parts of path may be in a tree.
func ValidPath(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if !ValidName(part) {
			return false
		}
	}
	return true
}
