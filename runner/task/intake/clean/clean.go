package clean

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"unicode"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// Removed counts hidden text withheld from the model.
type Removed struct {
	Characters int // invisible, bidirectional, tags, variation selectors, control characters
	Comments   int // of HTML, and link definitions used as comments
}

func (r *Removed) Add(other Removed) {
	r.Characters += other.Characters
	r.Comments += other.Comments
}

func (r Removed) Any() bool { return r.Characters+r.Comments > 0 }

// VisibleText returns text as its page shows it. It removes characters by Unicode category, not by a list:
// format (Cf), control (Cc) except line breaks and tabs, private use (Co), unassigned (Cn), and variation
// selectors. It removes comments everywhere, even in code: GitHub's parser decides on the limits of code,
// and a difference between parsers would be a way in. Line endings become \n.
func VisibleText(text string) (string, Removed) {
	text, characters := removeHidden(text)
	text, comments := removeComments(text)
	return strings.TrimSpace(text), Removed{Characters: characters, Comments: comments}
}

// emojiStyle after a symbol selects its coloured form. There it hides nothing, so it is removed without
// being counted.
const emojiStyle = '\ufe0f'

// removeHidden returns text without hidden characters, and their number. It runs before comments are
// removed, because a hidden character inside a comment's delimiter would hide the comment.
func removeHidden(text string) (visible string, removed int) {
	var b strings.Builder
	b.Grow(len(text))
	before := rune(0)
	for _, r := range strings.ReplaceAll(text, "\r\n", "\n") {
		switch {
		case r == emojiStyle && unicode.IsSymbol(before): // removed, not counted
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

// blockStart matches the line prefix of a block: blanks, quotes, list marks.
const blockStart = `(?m)^(?:[ \t>]|[-+*][ \t]|[0-9]{1,9}[.)][ \t])*`

// htmlStart matches the possible start of an HTML block. Markdown is not parsed inside, and an
// unclosed comment hides the rest of the text.
var htmlStart = lazyregexp.New(blockStart + `<(?:[!?]|/?[A-Za-z][A-Za-z0-9-]*(?:[ \t/>]|$))`)

// maxRounds limits the repeated scans after removals. Deeper nesting only serves to keep a run
// busy.
const maxRounds = 50

// removeComments returns text without comments, and their number. It repeats the removal, because a removed
// comment may join two halves of another.
func removeComments(text string) (visible string, removed int) {
	for round := 1; ; round++ {
		var comments, definitions int
		text, comments = removeHTMLComments(text)
		text, definitions = removeLinkDefinitionComments(text)
		if comments+definitions == 0 {
			return text, removed
		}
		removed += comments + definitions
		if round == maxRounds { // split, so that no definition is left and the next round is the last
			text = strings.ReplaceAll(text, "]:", "] :")
		}
	}
}

// removeHTMLComments returns text without HTML comments, and their number. It checks the text joined by a
// removal at once, in the same pass, because a text may contain thousands of nested comments.
func removeHTMLComments(text string) (withoutComments string, count int) {
	visible := make([]byte, 0, len(text))
	removed := 0
	for i := 0; i < len(text); {
		visible = append(visible, text[i])
		i++
		if !bytes.HasSuffix(visible, []byte(commentOpen)) {
			continue
		}
		visible = visible[:len(visible)-len(commentOpen)]
		end := commentEnd(text[i:])
		if end < 0 {
			rest, removedAtEnd := removeUnclosedComment(string(visible) + commentOpen + text[i:])
			return rest, removed + removedAtEnd
		}
		i += end
		removed++
	}
	return string(visible), removed
}

const commentOpen = "<!--"

// commentEnd returns the offset after the end of a comment, or -1 for an unclosed one. text starts after
// <!--. An HTML parser also accepts <!-->, <!---> and --!> as the end. The longest reading counts, so
// nothing hidden remains.
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

// removeUnclosedComment handles <!-- without an end. After the start of an HTML block it hides the rest of
// the page, so it removes the rest and returns 1. Elsewhere the page shows the text, so it only splits the
// delimiters.
func removeUnclosedComment(text string) (visible string, removed int) {
	if html := htmlStart().FindStringIndex(text); html != nil {
		if open := strings.Index(text[html[0]:], commentOpen); open >= 0 {
			text, removed = text[:html[0]+open], 1
		}
	}
	return strings.ReplaceAll(text, commentOpen, "<! --"), removed
}

// linkComment matches the start of a link definition used as a comment, up to the opening delimiter of the
// remark.
var linkComment = lazyregexp.New(blockStart + `\[(?:[^\]\\\n]|\\.)*\]:[ \t]*(?:#|<>)[ \t]*(?:\n[ \t]*)?[("']`)

// removeLinkDefinitionComments returns text without link definitions used as comments, and their number. In a
// comment such as [//]: # (text), the remark is the part in parentheses or quotes. A remark may span many lines.
// Without its closing delimiter, or with text after it on its line, the text is no definition.
func removeLinkDefinitionComments(text string) (withoutComments string, count int) {
	var visible strings.Builder
	copied, removed := 0, 0
	ends := remarkEndCache{text: text, known: map[byte]int{}}
	for _, head := range linkComment().FindAllStringIndex(text, -1) {
		if head[0] < copied {
			continue // in a remark
		}
		end := ends.endAfter(head[1], closingDelimiter[text[head[1]-1]])
		if end == len(text) {
			continue
		}
		rest := strings.TrimLeft(text[end+1:], " \t")
		if rest != "" && rest[0] != '\n' {
			continue
		}
		visible.WriteString(text[copied:head[0]])
		copied, removed = len(text)-len(rest), removed+1
	}
	visible.WriteString(text[copied:])
	return visible.String(), removed
}

var closingDelimiter = map[byte]byte{'(': ')', '"': '"', '\'': '\''}

// remarkEndCache finds the ends of remarks. It stores the last end for each closing delimiter, because an
// end further ahead closes all remarks before it.
type remarkEndCache struct {
	text  string
	known map[byte]int
}

// endAfter returns the offset of the first unescaped delimiter at or after from, or len(r.text) without one.
// Call it with increasing values of from.
func (r *remarkEndCache) endAfter(from int, delimiter byte) int {
	if end, known := r.known[delimiter]; known && end >= from {
		return end
	}
	end := from
	for end < len(r.text) && r.text[end] != delimiter {
		if r.text[end] == '\\' {
			end++
		}
		end++
	}
	r.known[delimiter] = min(end, len(r.text))
	return r.known[delimiter]
}

// Part is one piece of text with who wrote it.
type Part struct {
	Kind   string // issue, pull_request, question, comment, request, note, diff, ci_log
	Author string
	Text   string
	// Shown is set if Text already contains no hidden characters. MarkParts then leaves it unchanged.
	Shown bool `json:",omitempty"`
}

// MarkParts returns the visible text of all parts, each between marks with its kind and author. A single
// issue gets no marks, unless its text contains a similar one.
func MarkParts(parts []Part) (string, Removed) {
	var visible []Part
	var removed Removed
	for _, p := range parts {
		text := p.Text
		if !p.Shown {
			var removedHere Removed
			text, removedHere = VisibleText(p.Text)
			removed.Add(removedHere)
		}
		if text != "" {
			visible = append(visible, Part{Kind: p.Kind, Author: p.Author, Text: text})
		}
	}
	if len(visible) == 1 && visible[0].Kind == "issue" && !partMark().MatchString(visible[0].Text) {
		return visible[0].Text, removed
	}
	return wrapParts(visible), removed
}

var partMark = lazyregexp.New(`(?i)</?(?:task|issue|pull_request|question|comment|request|note|diff|ci_log)[ \t\n]+id[ \t\n]*=`)

// wrapParts joins the parts, each between marks with its own digest. No text can contain its own
// closing mark, so no part can imitate another author.
func wrapParts(parts []Part) string {
	var all []string
	for _, p := range parts {
		id := fmt.Sprintf("%.8x", sha256.Sum256([]byte(p.Kind+"\x00"+p.Author+"\x00"+p.Text)))
		all = append(all, fmt.Sprintf("<%s id=%q by=%q>\n%s\n</%s id=%q>", p.Kind, id, p.Author, p.Text, p.Kind, id))
	}
	return strings.Join(all, "\n\n")
}
