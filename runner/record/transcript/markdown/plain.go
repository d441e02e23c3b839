package markdown

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// live matches text with effects in titles and commit messages, and words that stop CI, such as
// "[skip ci]".
var live = lazyregexp.New(`(?im)(@)|(#)[0-9]|gh(-)[0-9]|https?(:)//|(##\[)|^[ \t]*(::)` +
	`|(\[)(?:` + skipWords + `)\]`)

// skipWords stop CI in brackets in a commit message.
const skipWords = "skip[ -]ci|ci[ -]skip|no[ -]ci|skip[ -]actions|actions[ -]skip"

// maxTitle is GitHub's limit, in UTF-16 units.
const maxTitle = 256

// Title returns s as a pull request's title or a commit's subject: one line of plain text without
// effects, up to 256 UTF-16 units. Titles are not copied, so a zero width space can prevent an
// effect.
func Title(s string) string {
	return Cut(part(oneLine(s), live()), maxTitle)
}

// part inserts a zero width space after the first character of each match's last group.
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

// trailer matches lines that git reads as trailers, see git-interpret-trailers(1).
var trailer = lazyregexp.New(`(?m)^([A-Za-z0-9][A-Za-z0-9-]*[ \t]*:)`)

// Commit is s as a part of a commit's message: plain text of several lines
// without effects. What reads like a trailer is indented by one blank.
func Commit(s string) string {
	s = widen(clean(s), live())
	return trailer().ReplaceAllString(strings.TrimSpace(s), " $1")
}

// longHeadline is the length from which a headline ends after its first sentence, in UTF-16 units.
const longHeadline = 72

// Headline returns the first line of running text of a message, without leading Markdown marks, or
// a heading if there is none. The result is not safe; use Title.
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

// withoutMarks returns a line without list, quote and bold marks, or "" if nothing readable is
// left.
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
