package intake

import (
	"bytes"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agent-ci/agent-ci/runner/transcript/markdown"
)

// Removed counts what a page does not show and the model does not get.
type Removed struct {
	Characters int // invisible, bidirectional, tags, variation selectors, control characters
	Comments   int // of HTML, and link definitions that stand in for comments
}

// Add counts more.
func (r *Removed) Add(more Removed) {
	r.Characters += more.Characters
	r.Comments += more.Comments
}

// Any says whether anything was removed.
func (r Removed) Any() bool { return r.Characters+r.Comments > 0 }

// Clean is text as somebody sees it who looks at its page. Characters go by
// their Unicode category, not by a list: format (Cf), control (Cc) but for line
// breaks and tabs, private use (Co), not assigned (Cn), and variation selectors.
// Comments go wherever they stand, also in code: what is code is for GitHub's
// parser to say, and another parser's opinion would be a way in. Line endings
// become "\n".
func Clean(text string) (string, Removed) {
	text, characters := visible(text)
	text, comments := withoutComments(text)
	return strings.TrimSpace(text), Removed{Characters: characters, Comments: comments}
}

// visible removes characters first: one between the marks of a comment would
// hide the comment from what looks for it.
func visible(text string) (string, int) {
	var b strings.Builder
	b.Grow(len(text))
	removed := 0
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		i += size
		switch {
		case r == '\r':
			if !strings.HasPrefix(text[i:], "\n") {
				b.WriteByte('\n')
			}
		case r == '\u2028' || r == '\u2029' || r == '\u0085':
			b.WriteByte('\n')
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case markdown.Hidden(r) || !unicode.IsGraphic(r):
			removed++
		default:
			b.WriteRune(r)
		}
	}
	return b.String(), removed
}

// linkComment is a definition of a link that nothing can refer to, with which
// people hide remarks: [//]: # (text).
var linkComment = regexp.MustCompile(`(?m)^[ \t>]*\[[^\]\n]*\]:[ \t]*(?:#|<>)[ \t]*(?:\n[ \t]*)?(?:\([^)]*\)|"[^"]*"|'[^']*')[ \t]*$`)

// blockStart is what may stand on a line before an HTML block: blanks, quotes,
// list marks. A comment that begins there and is not closed hides all the rest.
var blockStart = regexp.MustCompile(`^(?:[ \t>]|[-+*][ \t]|[0-9]{1,9}[.)][ \t])*$`)

// withoutComments repeats itself, since what is removed may leave the two halves
// of another comment together.
func withoutComments(text string) (string, int) {
	for removed := 0; ; {
		left, found := withoutHTMLComments(text)
		left = linkComment.ReplaceAllStringFunc(left, func(string) string { found++; return "" })
		if text, removed = left, removed+found; found == 0 {
			return text, removed
		}
	}
}

// withoutHTMLComments looks again at what a removed comment stood between: at
// once, since a text may have thousands that are made of each other.
func withoutHTMLComments(text string) (string, int) {
	var kept []byte
	removed := 0
	for {
		start := strings.Index(text, "<!--")
		if start < 0 {
			return string(append(kept, text...)), removed
		}
		kept, text = append(kept, text[:start]...), text[start:]
		switch end := commentEnd(text); {
		case end > 0:
			half := min(len(kept), len("<!-"))
			text = string(kept[len(kept)-half:]) + text[end:]
			kept = kept[:len(kept)-half]
			removed++
		case blockStart.Match(lastLine(kept)):
			return string(kept), removed + 1
		default: // it is shown as it stands; apart, it can become no comment
			kept, text = append(kept, "<! --"...), text[len("<!--"):]
		}
	}
}

func lastLine(text []byte) []byte { return text[bytes.LastIndexByte(text, '\n')+1:] }

// commentEnd is where the comment that text begins with ends, 0 when it does
// not. An HTML parser also ends one at <!-->, <!---> and --!>; the longest of
// the readings is taken, so that nothing hidden stays.
func commentEnd(text string) int {
	const open = len("<!--")
	if end := strings.Index(text[open:], "-->"); end >= 0 {
		return open + end + len("-->")
	}
	for _, short := range []string{"<!-->", "<!--->"} {
		if strings.HasPrefix(text, short) {
			return len(short)
		}
	}
	return 0
}
