// Package rules parses git's ignore files and decides whether a path is ignored (gitignore(5)). It opens
// no files.
package rules

import (
	"bytes"
	"slices"
	"strings"
)

// pattern is one line of an ignore file.
type pattern struct {
	text     string
	base     string // folder of the ignore file, "" or ending with a slash
	literal  int    // number of bytes before the first special character
	negated  bool
	dirOnly  bool
	nameOnly bool // has no slash, so it is compared with the last part of a path
	suffix   bool // "*" followed by plain text
}

const special = `*?[\`

// parsePattern parses a line of an ignore file in the folder base.
func parsePattern(text, base string) pattern {
	p := pattern{base: base}
	if strings.HasPrefix(text, "!") {
		p.negated = true
		text = text[1:]
	}
	if trimmed, ok := strings.CutSuffix(text, "/"); ok {
		p.dirOnly = true
		text = trimmed
	}
	p.text = text
	p.nameOnly = !strings.Contains(text, "/")
	p.literal = len(text)
	if at := strings.IndexAny(text, special); at >= 0 {
		p.literal = at
	}
	p.suffix = strings.HasPrefix(text, "*") && !strings.ContainsAny(text[1:], special)
	return p
}

// matches reports whether the pattern matches path, which is relative to the root of the checkout.
// fold ignores the case of ASCII letters.
func (p *pattern) matches(path string, isDir, fold bool) bool {
	if p.dirOnly && !isDir {
		return false
	}
	if p.nameOnly {
		return p.matchesName(path[strings.LastIndexByte(path, '/')+1:], fold)
	}
	if len(path) < len(p.base) || !equal(path[:len(p.base)], p.base, fold) {
		return false
	}
	return p.matchesPath(path[len(p.base):], fold)
}

// matchesName reports whether the pattern matches the last part of a path.
func (p *pattern) matchesName(name string, fold bool) bool {
	switch {
	case p.literal == len(p.text): // no special character
		return equal(p.text, name, fold)
	case p.suffix: // such as "*.go"
		n := len(p.text) - 1
		return n <= len(name) && equal(p.text[1:], name[len(name)-n:], fold)
	}
	return matcher{fold: fold}.matches(p.text, name)
}

// matchesPath compares the part before the first special character byte by byte, and the rest as a
// pattern. Therefore "foo**/bar" matches "foo/x/bar", as in git.
func (p *pattern) matchesPath(path string, fold bool) bool {
	text, literal := p.text, p.literal
	if strings.HasPrefix(text, "/") {
		text, literal = text[1:], literal-1
	}
	if literal > len(path) || !equal(text[:literal], path[:literal], fold) {
		return false
	}
	text, path = text[literal:], path[literal:]
	if text == "" {
		return path == ""
	}
	return matcher{paths: true, fold: fold}.matches(text, path)
}

// equal compares two texts. fold ignores the case of ASCII letters.
func equal(a, b string, fold bool) bool {
	if !fold {
		return a == b
	}
	return len(a) == len(b) && lower(a) == lower(b)
}

// Ignore is the list of patterns of an ignore file.
type Ignore []pattern

// ParseIgnore parses an ignore file in the folder base. base ends with a slash. It is "" for the
// root, and for files outside the checkout.
func ParseIgnore(data []byte, base string) Ignore {
	var list Ignore
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	for line := range strings.SplitSeq(string(data), "\n") {
		line = trimSpaces(strings.TrimSuffix(line, "\r"))
		if line == "" || line[0] == '#' {
			continue
		}
		list = append(list, parsePattern(line, base))
	}
	return list
}

// Empty reports whether the file has no patterns.
func (l Ignore) Empty() bool { return len(l) == 0 }

// trimSpaces removes trailing spaces, except those escaped by a backslash.
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

// Decide reports whether the file ignores path. decided is false if no pattern matches. The last
// pattern that matches decides.
func (l Ignore) Decide(path string, isDir, fold bool) (ignored, decided bool) {
	for _, p := range slices.Backward(l) {
		if p.matches(path, isDir, fold) {
			return !p.negated, true
		}
	}
	return false, false
}
