package markdown

import (
	"regexp"
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
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
	s = inertCode(clean(s))
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

// closing matches a closing keyword with its reference. GitHub also obeys them in a commit message,
// and a squash merge makes one of the body, including code.
var closing = lazyregexp.New(`(?i)(close[sd]?|fix(?:es|ed)?|resolve[sd]?)[\s:]+(?:[\w.-]+/[\w.-]+)?(#[0-9]|gh-[0-9]|https?:)`)

// command matches a workflow command: at the start of a line, or in the old form anywhere. A step
// that prints the body would run it.
var command = lazyregexp.New(`(?m)^[ \t]*(::)|(##\[)`)

// skip matches words that stop CI, if a squash merge makes a commit message of the body.
var skip = lazyregexp.New(`(?i)(\[)(?:` + skipWords + `)\]`)

// slash matches a command to a bot at the start of a line, such as "/approve". Bots read raw
// bodies, including code. A path with several parts does not match.
var slash = lazyregexp.New(`(?m)^[ \t]*(/)[A-Za-z][\w-]*(?:[ \t]|$)`)

// bot matches mentions of widely used agents and bots, which obey mentions even in code. The body's
// account may be one that they obey. Other mentions stay, since "@" is common in code.
var bot = lazyregexp.New(`(?i)(@)(?:agent-ci|bors|claude|coderabbitai|codex|copilot|cursor|dependabot|devin|gemini-cli|greptileai|jules|k8s-ci-robot|mergify|openhands|renovate|sweep)`)

// ownMark is the prefix of agent-ci's own marks in comments.
const ownMark = "<!-- agent-ci:"

// inertCode removes effects that work even in code.
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

// wide maps characters essential for references and commands to full-width ones.
var wide = strings.NewReplacer("#", "＃", "-", "－", ":", "：", "@", "＠", "[", "［", "/", "／")

// widen replaces these characters in each match's last group by full-width ones.
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
