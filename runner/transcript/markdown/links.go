package markdown

import "strings"

// Link is a link of our own: an address that was made and not found, and what it is
// called, which is Markdown already.
type Link struct {
	Name, Address string
}

// String is the link as Markdown; without an address its name alone.
func (l Link) String() string {
	if l.Address == "" {
		return l.Name
	}
	return "[" + l.Name + "](" + l.Address + ")"
}

// Known is a text that stands for something of our own wherever a sentence has it.
type Known struct {
	Text string
	Link Link
}

// Linked is Text of a sentence of our own, in which what is known is a link. Of two that
// begin at one place the first one given counts.
func Linked(s string, all []Known) string {
	var b strings.Builder
	s = oneLine(s)
	for s != "" {
		at, next := len(s), Known{}
		for _, k := range all {
			if i := wholeIndex(s, k.Text); i >= 0 && i < at {
				at, next = i, k
			}
		}
		b.WriteString(between(s[:at], b.Len() == 0))
		s = s[at:]
		if next.Text != "" {
			if strings.HasSuffix(b.String(), "!") { // an image else
				b.WriteString(apart)
			}
			b.WriteString(next.Link.String())
			s = s[len(next.Text):]
		}
	}
	return b.String()
}

// wholeIndex is where part stands in s and is no part of a longer word, number or path;
// -1 for nowhere.
func wholeIndex(s, part string) int {
	for from := 0; part != "" && from+len(part) <= len(s); {
		i := strings.Index(s[from:], part)
		if i < 0 {
			return -1
		}
		i += from
		end := i + len(part)
		if (i == 0 || !continues(s[i-1:i], part[:1])) && (end == len(s) || !continues(s[end:], part[len(part)-1:])) {
			return i
		}
		from = i + 1
	}
	return -1
}

// continues says whether what stands next to a part makes it one of something longer.
func continues(next, own string) bool {
	c := next[0]
	return isWord(c) && isWord(own[0]) || strings.IndexByte("/-_#", c) >= 0 || c >= 0x80
}
