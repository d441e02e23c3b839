package v4a

import (
	"path"
	"strings"
)

// elements checks a path as a patch spells it and splits it. The problem is
// empty when there is none.
func elements(name string) (parts []string, problem string) {
	clean := path.Clean(name)
	switch {
	case name == "":
		return nil, "the path is empty"
	case strings.ContainsRune(name, 0):
		return nil, "the path holds a NUL"
	case path.IsAbs(name):
		return nil, "a patch changes files below the working directory only, named relative to it"
	case clean == ".." || strings.HasPrefix(clean, "../"):
		return nil, "the path leaves the working directory, and a patch changes files below it only"
	case namesDirectory(name):
		return nil, "this names a directory; name a file"
	}
	return strings.Split(clean, "/"), ""
}

// namesDirectory reports whether a path can be that of a directory only.
func namesDirectory(name string) bool {
	switch name[strings.LastIndexByte(name, '/')+1:] {
	case "", ".", "..":
		return true
	}
	return false
}

// meansDotGit reports whether some file system takes the element of a path for
// ".git", or for what is below it where "\" separates.
func meansDotGit(element string) bool {
	for part := range strings.SplitSeq(element, `\`) {
		part = strings.Map(passedOver, part)
		part, _, _ = strings.Cut(part, ":")
		part = strings.TrimRight(part, " .")
		if strings.EqualFold(part, ".git") || strings.EqualFold(part, "git~1") {
			return true
		}
	}
	return false
}

// passedOver drops the characters that HFS+ passes over when it compares names.
func passedOver(r rune) rune {
	switch {
	case r >= 0x200C && r <= 0x200F, r >= 0x202A && r <= 0x202E, r >= 0x206A && r <= 0x206F, r == 0xFEFF:
		return -1
	}
	return r
}
