package markdown

import (
	"cmp"
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// liveText matches text with an effect in titles and commit messages, such as mentions and references,
// and words that skip CI, such as "[skip ci]".
var liveText = lazyregexp.New(`(?im)(@)|(#)[0-9]|gh(-)[0-9]|https?(:)//|(##\[)|^[ \t]*(::)` +
	`|(\[)(?:` + skipWords + `)\]`)

// skipWords skip CI if they are in brackets in a commit message.
const skipWords = "skip[ -]ci|ci[ -]skip|no[ -]ci|skip[ -]actions|actions[ -]skip"

// maxTitle is GitHub's limit for titles, in UTF-16 units.
const maxTitle = 256

// Title returns s as the title of a pull request or the subject of a commit: one line of plain text
// without effects, of up to 256 UTF-16 units. A zero width space prevents an effect. People do not
// copy titles, so that does no harm.
func Title(s string) string {
	return Cut(replaceLastGroups(oneLine(s), liveText(), breakUp), maxTitle)
}

// breakUp inserts a zero width space after the first character, so that the text has no effect.
func breakUp(group string) string { return group[:1] + "\u200b" + group[1:] }

// trailerLine matches lines that git reads as trailers: see git-interpret-trailers(1).
var trailerLine = lazyregexp.New(`(?m)^([A-Za-z0-9][A-Za-z0-9-]*[ \t]*:)`)

// Commit returns s as a part of a commit message: several lines of plain text without effects. A
// line that looks like a trailer is indented by one blank.
func Commit(s string) string {
	s = makeFullWidth(visibleText(s), liveText())
	return trailerLine().ReplaceAllString(strings.TrimSpace(s), " $1")
}

// longHeadline is the length, in UTF-16 units, above which a headline ends after its first
// sentence.
const longHeadline = 72

// Headline returns the first line of running text of a message, without Markdown marks at its
// start. Without running text, it returns the first heading. The result may have effects; pass it
// to Title.
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

// withoutMarks returns a line without marks of lists, quotes and bold text. It returns "" if
// nothing readable remains.
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

// firstSentence returns a line without its full stop. It returns only the first sentence of a long line.
func firstSentence(line string) string {
	if end := strings.Index(line, ". "); end > 0 && Units(line) > longHeadline {
		return line[:end]
	}
	if strings.HasSuffix(line, "..") {
		return line
	}
	return strings.TrimSuffix(line, ".")
}
