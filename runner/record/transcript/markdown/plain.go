package markdown

import (
	"cmp"
	"regexp"
	"strings"
)

// live is what GitHub makes something of in a title and in a commit's message,
// and what keeps CI from running: "[skip ci]" and its kin.
var live = lazily(`(?im)(@)|(#)[0-9]|gh(-)[0-9]|https?(:)//|(##\[)|^[ \t]*(::)` +
	`|(\[)(?:` + skipWords + `)\]`)

// skipWords stand in brackets in a commit's message that no CI is to run for.
const skipWords = "skip[ -]ci|ci[ -]skip|no[ -]ci|skip[ -]actions|actions[ -]skip"

// maxTitle is GitHub's limit, in UTF-16 units.
const maxTitle = 256

// Title is s as a title of a pull request and the subject of a commit: one line
// of plain text without effects, at most 256 UTF-16 units. A title is read and not
// copied, so that a zero width space is in the way of an effect.
func Title(s string) string {
	return Cut(part(oneLine(s), live()), maxTitle)
}

// part puts a zero width space behind the first character of the last group of each match
// that took part in it.
func part(s string, pattern *regexp.Regexp) string {
	const zeroWidth = "\u200b"
	var b strings.Builder
	done := 0
	for _, m := range pattern.FindAllStringSubmatchIndex(s, -1) {
		start, _ := lastGroup(m)
		b.WriteString(s[done:start+1] + zeroWidth)
		done = start + 1
	}
	return b.String() + s[done:]
}

// trailer is a line that git takes for a trailer, see git-interpret-trailers(1).
var trailer = lazily(`(?m)^([A-Za-z0-9][A-Za-z0-9-]*[ \t]*:)`)

// Commit is s as a part of a commit's message: plain text of several lines
// without effects. What reads like a trailer is indented by one blank.
func Commit(s string) string {
	s = widen(Clean(s), live())
	return trailer().ReplaceAllString(strings.TrimSpace(s), " $1")
}

// longHeadline is from where a headline ends with its first sentence, in UTF-16
// units.
const longHeadline = 72

// Headline is the first line of running text of a message, without the marks of
// Markdown at its start; a heading stands in for it where there is no other
// text. It is not made harmless: Title is for that.
func Headline(s string) string {
	heading := ""
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(line)
		if m := headingLine().FindStringSubmatch(line); m != nil {
			line = ""
			heading = cmp.Or(heading, m[2])
		}
		if line = withoutMarks(line); line != "" {
			return firstSentence(line)
		}
	}
	return withoutMarks(heading)
}

// withoutMarks is a line without its list mark, quote and bold marks; "" where
// nothing of it can be read aloud.
func withoutMarks(line string) string {
	if m := itemLine().FindStringSubmatch(line); m != nil {
		line = m[3]
	}
	line = strings.TrimSpace(strings.ReplaceAll(strings.TrimLeft(line, "> "), "**", ""))
	if strings.Trim(line, "`~-=*_|#: ") == "" {
		return ""
	}
	return line
}

func firstSentence(line string) string {
	if end := strings.Index(line, ". "); end > 0 && Units(line) > longHeadline {
		return line[:end]
	}
	if strings.HasSuffix(line, "..") {
		return line
	}
	return strings.TrimSuffix(line, ".")
}
