package rules

import (
	"bytes"
	"strings"
)

type Ignore struct {
	patterns []pattern
}

// ParseIgnore reads an ignore file that stands in the folder base, which is ""
// for the root and for files outside of the checkout, else ends with a slash.
func ParseIgnore(data []byte, base string) Ignore {
	var list Ignore
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	for line := range strings.SplitSeq(string(data), "\n") {
		line = trimSpaces(strings.TrimSuffix(line, "\r"))
		if line == "" || line[0] == '#' {
			continue
		}
		list.patterns = append(list.patterns, parsePattern(line, base))
	}
	return list
}

// Empty says that the file decides nothing.
func (l Ignore) Empty() bool { return len(l.patterns) == 0 }

// trimSpaces cuts trailing spaces that no backslash stands before.
func trimSpaces(line string) string {
	keep := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			continue
		case '\\':
			i++
		}
		keep = min(i+1, len(line))
	}
	return line[:keep]
}

// Decide returns whether path is ignored by this file and whether the file
// says anything of it at all. The last pattern that matches decides.
func (l Ignore) Decide(path string, isDir, fold bool) (ignored, decided bool) {
	for i := len(l.patterns) - 1; i >= 0; i-- {
		if l.patterns[i].matches(path, isDir, fold) {
			return !l.patterns[i].negated, true
		}
	}
	return false, false
}
