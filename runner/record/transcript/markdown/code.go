package markdown

import (
	"regexp"
	"strings"
	"sync"
)

// Code is s as a code span on one line, also in a table cell; "" for an empty s. A "|" in a code span can't
// be written in a cell in every case, so such a text becomes an element.
func Code(s string) string {
	if strings.Contains(s, "|") {
		return "<code>" + Text(s) + "</code>"
	}
	s = inertCode(oneLine(s))
	if s == "" {
		return ""
	}
	fence := strings.Repeat("`", longestRun(s, '`')+1)
	if s[0] == '`' || s[len(s)-1] == '`' {
		s = " " + s + " "
	}
	return fence + s + fence
}

// Fence is s as a block of code, with the newline after it.
func Fence(s string) string {
	s = inertCode(Clean(s))
	fence := strings.Repeat("`", max(3, longestRun(s, '`')+1))
	if s != "" && !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	return fence + "\n" + s + fence + "\n"
}

func longestRun(s string, c byte) int {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] != c {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// lazily compiles a pattern at its first use: every start of the program would
// pay for it.
func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// closing is a closing keyword with the reference after it. GitHub heeds them
// in a commit's message too, and a squash merge makes the body one, with all
// that is a code block here.
var closing = lazily(`(?i)(close[sd]?|fix(?:es|ed)?|resolve[sd]?)[\s:]+(?:[\w.-]+/[\w.-]+)?(#[0-9]|gh-[0-9]|https?:)`)

// command is a workflow command: at the start of a line, or of the old form
// anywhere. A step that prints the body would run it.
var command = lazily(`(?m)^[ \t]*(::)|(##\[)`)

// skip keeps CI from running where a squash merge makes the body a commit's
// message.
var skip = lazily(`(?i)(\[)(?:` + skipWords + `)\]`)

// slash is a command to a bot, which reads comments and bodies as they were
// written, code and all: "/approve" at the start of a line. A path of several
// parts is none.
var slash = lazily(`(?m)^[ \t]*(/)[A-Za-z][\w-]*(?:[ \t]|$)`)

// bot is the name of an agent or a bot that takes orders from whoever it lets,
// in whatever text names it, code too; the account that writes a body may be one
// of those. The list is of what is in wide use. Other names stay, since "@" is
// common in code.
var bot = lazily(`(?i)(@)(?:agent-ci|bors|claude|coderabbitai|codex|copilot|cursor|dependabot|devin|gemini-cli|greptileai|jules|k8s-ci-robot|mergify|openhands|renovate|sweep)`)

// ownMark begins the comments by which agent-ci knows what it wrote.
const ownMark = "<!-- agent-ci:"

// inertCode takes the effect from what has one even in code.
func inertCode(s string) string {
	if containsFold(s, "fix") || containsFold(s, "close") || containsFold(s, "resolve") {
		s = widen(s, closing())
	}
	if strings.Contains(s, "::") || strings.Contains(s, "##[") {
		s = widen(s, command())
	}
	if beginsLine(s, '/') {
		s = widen(s, slash())
	}
	if strings.Contains(s, "[") && strings.Contains(s, "]") {
		s = widen(s, skip())
	}
	if strings.Contains(s, "@") {
		s = widen(s, bot())
	}
	return strings.ReplaceAll(s, ownMark, "＜"+ownMark[1:])
}

// beginsLine says whether c is the first on some line, blanks aside.
func beginsLine(s string, c byte) bool {
	for line := range strings.Lines(s) {
		if line = strings.TrimLeft(line, " \t"); line != "" && line[0] == c {
			return true
		}
	}
	return false
}

// containsFold is for an ASCII part in lower case.
func containsFold(s, part string) bool {
	for i := range len(s) - len(part) + 1 {
		if s[i]|0x20 == part[0] && strings.EqualFold(s[i:i+len(part)], part) {
			return true
		}
	}
	return false
}

// wide are the characters that a reference or a command can't do without.
var wide = strings.NewReplacer("#", "＃", "-", "－", ":", "：", "@", "＠", "[", "［", "/", "／")

// widen writes such characters in full width in the last group of each match
// that took part in it.
func widen(s string, pattern *regexp.Regexp) string {
	var b strings.Builder
	done := 0
	for _, m := range pattern.FindAllStringSubmatchIndex(s, -1) {
		start, end := lastGroup(m)
		b.WriteString(s[done:start])
		b.WriteString(wide.Replace(s[start:end]))
		done = end
	}
	b.WriteString(s[done:])
	return b.String()
}

func lastGroup(match []int) (start, end int) {
	for i := len(match) - 2; i > 0; i -= 2 {
		if match[i] >= 0 {
			return match[i], match[i+1]
		}
	}
	return match[0], match[1]
}
