package clean

import (
	"regexp"
	"strings"
)

// linkComment begins a definition of a link that nothing can refer to, with which
// people hide remarks: [//]: # (text). It ends in the mark that opens the remark.
var linkComment = regexp.MustCompile(blockStart + `\[(?:[^\]\\\n]|\\.)*\]:[ \t]*(?:#|<>)[ \t]*(?:\n[ \t]*)?[("']`)

// withoutLinkComments removes such definitions. A remark may go over many lines;
// where none ends it, the text is no definition.
func withoutLinkComments(text string) (string, int) {
	var kept strings.Builder
	at, removed := 0, 0
	ends := remarkEnds{text: text, known: map[byte]int{}}
	for _, head := range linkComment.FindAllStringIndex(text, -1) {
		if head[0] < at {
			continue // in a remark
		}
		end := ends.after(head[1], closingOf[text[head[1]-1]])
		if end == len(text) {
			continue
		}
		rest := strings.TrimLeft(text[end+1:], " \t")
		if rest != "" && rest[0] != '\n' {
			continue
		}
		kept.WriteString(text[at:head[0]])
		at, removed = len(text)-len(rest), removed+1
	}
	kept.WriteString(text[at:])
	return kept.String(), removed
}

var closingOf = map[byte]byte{'(': ')', '"': '"', '\'': '\''}

// remarkEnds finds where remarks end. It remembers the last end of each kind: one
// that is ahead still ends all that begin before it.
type remarkEnds struct {
	text  string
	known map[byte]int
}

// after is the first mark from a place on that no backslash stands before; the
// end of the text where there is none.
func (r *remarkEnds) after(from int, mark byte) int {
	if end, known := r.known[mark]; known && end >= from {
		return end
	}
	end := from
	for end < len(r.text) && r.text[end] != mark {
		if r.text[end] == '\\' {
			end++
		}
		end++
	}
	r.known[mark] = min(end, len(r.text))
	return r.known[mark]
}
