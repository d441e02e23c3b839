package markdown

import (
	"regexp"
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// Code returns s as a code span on one line, or "" for an empty s. The result may be used in a table cell.
// A code span in a table cell cannot contain every "|", so a text with "|" becomes an HTML element.
func Code(s string) string {
	if strings.Contains(s, "|") {
		return "<code>" + Text(s) + "</code>"
	}
	s = inertCode(oneLine(s))
	if s == "" {
		return ""
	}
	fence := strings.Repeat("`", longestFence(s)+1)
	if s[0] == '`' || s[len(s)-1] == '`' {
		s = " " + s + " "
	}
	return fence + s + fence
}

// Fence returns s as a block of code, with a newline after it.
func Fence(s string) string {
	s = inertCode(visibleText(s))
	fence := strings.Repeat("`", max(3, longestFence(s)+1))
	if s != "" && !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	return fence + "\n" + s + fence + "\n"
}

// longestFence returns the length of the longest run of backticks in s.
func longestFence(s string) int {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// closingKeyword matches a keyword that closes an issue, with its reference. GitHub obeys such keywords in
// commit messages, too. A squash merge makes a commit message of the body, code included.
var closingKeyword = lazyregexp.New(`(?i)(close[sd]?|fix(?:es|ed)?|resolve[sd]?)[\s:]+(?:[\w.-]+/[\w.-]+)?(#[0-9]|gh-[0-9]|https?:)`)

// workflowCommand matches a workflow command: at the start of a line, or in the old form anywhere. A
// workflow step that prints the body would run it.
var workflowCommand = lazyregexp.New(`(?m)^[ \t]*(::)|(##\[)`)

// skipsCI matches words that skip CI. They would work if a squash merge made a commit message of the
// body.
var skipsCI = lazyregexp.New(`(?i)(\[)(?:` + skipWords + `)\]`)

// slashCommand matches a command for a bot at the start of a line, such as "/approve". Bots read the raw
// body, code included. A path with several parts is no match.
var slashCommand = lazyregexp.New(`(?m)^[ \t]*(/)[A-Za-z][\w-]*(?:[ \t]|$)`)

// botMention matches mentions of common agents and bots. Bots obey mentions even in code, and may obey the
// account that posts the body. Other mentions stay, because "@" is common in code.
var botMention = lazyregexp.New(`(?i)(@)(?:agent-ci|bors|claude|coderabbitai|codex|copilot|cursor|dependabot|devin|gemini-cli|greptileai|jules|k8s-ci-robot|mergify|openhands|renovate|sweep)`)

// ownMark is the beginning of agent-ci's own marks in comments.
const ownMark = "<!-- agent-ci:"

// inertCode returns s without the effects that a text has even in code, such as closing an issue. It replaces the
// characters that cause them by full-width ones. The checks before the patterns only save time.
func inertCode(s string) string {
	if containsFold(s, "fix") || containsFold(s, "close") || containsFold(s, "resolve") {
		s = makeFullWidth(s, closingKeyword())
	}
	if strings.Contains(s, "::") || strings.Contains(s, "##[") {
		s = makeFullWidth(s, workflowCommand())
	}
	if hasLineWithSlash(s) {
		s = makeFullWidth(s, slashCommand())
	}
	if strings.Contains(s, "[") && strings.Contains(s, "]") {
		s = makeFullWidth(s, skipsCI())
	}
	if strings.Contains(s, "@") {
		s = makeFullWidth(s, botMention())
	}
	return strings.ReplaceAll(s, ownMark, "＜"+ownMark[1:])
}

// hasLineWithSlash reports whether a line begins with a slash, ignoring blanks.
func hasLineWithSlash(s string) bool {
	for line := range strings.Lines(s) {
		if strings.HasPrefix(strings.TrimLeft(line, " \t"), "/") {
			return true
		}
	}
	return false
}

// containsFold reports whether s contains part in any case. part is ASCII in lower case.
func containsFold(s, part string) bool {
	for i := range len(s) - len(part) + 1 {
		if s[i]|0x20 == part[0] && strings.EqualFold(s[i:i+len(part)], part) {
			return true
		}
	}
	return false
}

// fullWidth replaces characters that references and commands need by full-width ones.
var fullWidth = strings.NewReplacer("#", "＃", "-", "－", ":", "：", "@", "＠", "[", "［", "/", "／")

// makeFullWidth replaces the characters of each match that have an effect by full-width ones. If the pattern
// has groups, it replaces only in the last group that matched.
func makeFullWidth(s string, pattern *regexp.Regexp) string {
	return replaceLastGroups(s, pattern, fullWidth.Replace)
}

// replaceLastGroups replaces the last group of each match, or the whole match of a pattern without groups.
func replaceLastGroups(s string, pattern *regexp.Regexp, replace func(string) string) string {
	var b strings.Builder
	done := 0
	for _, m := range pattern.FindAllStringSubmatchIndex(s, -1) {
		start, end := lastGroup(m)
		b.WriteString(s[done:start] + replace(s[start:end]))
		done = end
	}
	return b.String() + s[done:]
}

// lastGroup returns the bounds of the last group that matched, or of the whole match. match has pairs of bounds: those of
// the whole match, and those of each group, which are -1 if the group did not match.
func lastGroup(match []int) (start, end int) {
	for i := len(match) - 2; i > 0; i -= 2 {
		if match[i] >= 0 {
			return match[i], match[i+1]
		}
	}
	return match[0], match[1]
}
