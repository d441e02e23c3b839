package clean

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// Removed counts what a page does not show and the model does not get.
type Removed struct {
	Characters int // invisible, bidirectional, tags, variation selectors, control characters
	Comments   int // of HTML, and link definitions that stand in for comments
}

func (r *Removed) Add(more Removed) {
	r.Characters += more.Characters
	r.Comments += more.Comments
}

func (r Removed) Any() bool { return r.Characters+r.Comments > 0 }

// Text is text as somebody sees it who looks at its page. Characters go by
// their Unicode category, not by a list: format (Cf), control (Cc) but for line
// breaks and tabs, private use (Co), not assigned (Cn), and variation selectors.
// Comments go wherever they stand, also in code: what is code is for GitHub's
// parser to say, and another parser's opinion would be a way in. Line endings
// become "\n".
func Text(text string) (string, Removed) {
	text, characters := visible(text)
	text, comments := withoutComments(text)
	return strings.TrimSpace(text), Removed{Characters: characters, Comments: comments}
}

// emojiStyle behind a symbol asks for its picture: ⚠️ is two characters. It hides nothing there, and
// is removed without being counted.
const emojiStyle = '\ufe0f'

// visible removes characters first: one between the marks of a comment would
// hide the comment from what looks for it.
func visible(text string) (string, int) {
	var b strings.Builder
	b.Grow(len(text))
	removed, before := 0, rune(0)
	for _, r := range strings.ReplaceAll(text, "\r\n", "\n") {
		switch {
		case r == emojiStyle && unicode.IsSymbol(before):
		case r == '\r' || r == '\u2028' || r == '\u2029' || r == '\u0085':
			b.WriteByte('\n')
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case markdown.Hidden(r) || !unicode.IsGraphic(r):
			removed++
		default:
			b.WriteRune(r)
		}
		before = r
	}
	return b.String(), removed
}

// blockStart is what may stand on a line before a block: blanks, quotes, list
// marks.
const blockStart = `(?m)^(?:[ \t>]|[-+*][ \t]|[0-9]{1,9}[.)][ \t])*`

// htmlStart is where HTML may begin that is not looked at as Markdown: in it a
// comment that is not closed hides all the rest.
var htmlStart = regexp.MustCompile(blockStart + `<(?:[!?]|/?[A-Za-z][A-Za-z0-9-]*(?:[ \t/>]|$))`)

// mostRounds is how often a text is looked at again for what comes to light when
// something was removed. Nobody nests remarks that deep but to keep a run busy.
const mostRounds = 50

// withoutComments repeats itself, since what is removed may leave the two halves
// of another comment together.
func withoutComments(text string) (string, int) {
	for removed, round := 0, 1; ; round++ {
		left, found := withoutHTMLComments(text)
		left, definitions := withoutLinkComments(left)
		found += definitions
		if text, removed = left, removed+found; found == 0 {
			return text, removed
		}
		if round == mostRounds { // apart, none of them is left
			text = strings.ReplaceAll(text, "]:", "] :")
		}
	}
}

// withoutHTMLComments looks again at what a removed comment stood between: at
// once, since a text may have thousands that are made of each other.
func withoutHTMLComments(text string) (string, int) {
	kept := make([]byte, 0, len(text))
	removed := 0
	for i := 0; i < len(text); {
		kept = append(kept, text[i])
		i++
		if !bytes.HasSuffix(kept, []byte(commentOpen)) {
			continue
		}
		kept = kept[:len(kept)-len(commentOpen)]
		end := commentEnd(text[i:])
		if end < 0 {
			left, more := withoutOpenComment(string(kept) + commentOpen + text[i:])
			return left, removed + more
		}
		i += end
		removed++
	}
	return string(kept), removed
}

const commentOpen = "<!--"

// commentEnd is where the comment ends that text is behind the opening of, less
// than 0 when it does not. An HTML parser also ends one at <!-->, <!---> and
// --!>; the longest of the readings is taken, so that nothing hidden stays.
func commentEnd(text string) int {
	if end := strings.Index(text, "-->"); end >= 0 {
		return end + len("-->")
	}
	for _, short := range []string{">", "->"} {
		if strings.HasPrefix(text, short) {
			return len(short)
		}
	}
	return -1
}

// withoutOpenComment looks at a text whose comments are not closed. Within HTML
// the first hides all the rest; elsewhere they are shown as they stand. Apart,
// they can become no comment.
func withoutOpenComment(text string) (string, int) {
	removed := 0
	if html := htmlStart.FindStringIndex(text); html != nil {
		if open := strings.Index(text[html[0]:], commentOpen); open >= 0 {
			text, removed = text[:html[0]+open], 1
		}
	}
	return strings.ReplaceAll(text, commentOpen, "<! --"), removed
}

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

// Part is one piece of text with who wrote it.
type Part struct {
	Kind   string // issue, pull_request, question, comment, request, note, diff, ci_log
	Author string
	Text   string
	// Shown says that what no page shows is shown in Text already: it stays as it is.
	Shown bool `json:",omitempty"`
}

// Parts is what can be seen of the parts, as one text, each between marks. An issue
// alone needs none, where its text has nothing that looks like one.
func Parts(parts []Part) (string, Removed) {
	var shown []Part
	var removed Removed
	for _, p := range parts {
		text := p.Text
		if !p.Shown {
			var more Removed
			text, more = Text(p.Text)
			removed.Add(more)
		}
		if text != "" {
			shown = append(shown, Part{Kind: p.Kind, Author: p.Author, Text: text})
		}
	}
	if len(shown) == 1 && shown[0].Kind == "issue" && !aMark.MatchString(shown[0].Text) {
		return shown[0].Text, removed
	}
	return marked(shown), removed
}

var aMark = regexp.MustCompile(`(?i)</?(?:task|issue|pull_request|question|comment|request|note|diff|ci_log)[ \t\n]+id[ \t\n]*=`)

// marked is the parts as one text, each between marks that carry its own digest: no
// text can hold the mark that ends it, so none can pass for what somebody else
// wrote.
func marked(parts []Part) string {
	var all []string
	for _, p := range parts {
		sum := sha256.Sum256([]byte(p.Kind + "\x00" + p.Author + "\x00" + p.Text))
		id := hex.EncodeToString(sum[:8])
		all = append(all, fmt.Sprintf("<%s id=%q by=%q>\n%s\n</%s id=%q>", p.Kind, id, p.Author, p.Text, p.Kind, id))
	}
	return strings.Join(all, "\n\n")
}
