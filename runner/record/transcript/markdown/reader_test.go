package markdown

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// The tests read what the package writes by rules of their own, from CommonMark
// 0.31 (sections 4.5 and 6.1) and GitHub's documentation.

// outsideCode is Markdown without its fenced blocks and code spans. It fails if
// a fence stays open.
func outsideCode(t testing.TB, text string) string {
	t.Helper()
	var prose []string
	fence := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		mark := line[:len(line)-len(strings.TrimLeft(line, "`"))]
		switch {
		case fence == "" && len(mark) >= 3 && !strings.Contains(line[len(mark):], "`"):
			fence = mark
		case fence == "":
			prose = append(prose, line)
		case len(mark) >= len(fence) && strings.TrimSpace(line[len(mark):]) == "":
			fence = ""
		}
	}
	must.Same(t, "", fence, "a fence is left open in", text)
	return withoutSpans(strings.Join(prose, "\n"))
}

// withoutSpans writes "C" for each code span. No span goes over an empty line.
func withoutSpans(text string) string {
	var out strings.Builder
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		for i := 0; i < len(paragraph); {
			switch c := paragraph[i]; c {
			case '\\':
				out.WriteString(paragraph[i:min(i+2, len(paragraph))])
				i += 2
			case '`':
				run := len(paragraph[i:]) - len(strings.TrimLeft(paragraph[i:], "`"))
				if n := spanEnd(paragraph[i+run:], run); n >= 0 {
					out.WriteString("C")
					i += n + run
				} else {
					out.WriteString(paragraph[i : i+run])
				}
				i += run
			default:
				out.WriteByte(c)
				i++
			}
		}
		out.WriteString("\n\n")
	}
	return out.String()
}

// spanEnd is where the run of exactly so many backticks begins, -1 for nowhere.
func spanEnd(text string, run int) int {
	for i := 0; i < len(text); {
		n := len(text[i:]) - len(strings.TrimLeft(text[i:], "`"))
		if n == run {
			return i
		}
		i += max(1, n)
	}
	return -1
}

// alive are what GitHub acts on outside of code.
var alive = []*regexp.Regexp{
	regexp.MustCompile(`@[A-Za-z0-9]`),
	regexp.MustCompile(`#[0-9]`),
	regexp.MustCompile(`(?i)gh-[0-9]`),
	regexp.MustCompile(`://`),
	regexp.MustCompile(`(?i)www\.`),
	regexp.MustCompile(`(?m)^[ \t]*::`),
	regexp.MustCompile(`##\[`),
}

// ours is the HTML that the package writes.
var ours = strings.NewReplacer("<span>$</span>", "D", "<code>", "C", "</code>", "C")

var unescaped = regexp.MustCompile(`\\[!-/:-@\[-` + "`" + `{-~]`)

// wantInert fails if anything outside of code has an effect once it is read.
func wantInert(t testing.TB, text string) {
	t.Helper()
	prose := ours.Replace(outsideCode(t, text))
	must.Same(t, false, strings.ContainsAny(prose, "<$"), "HTML or mathematics is left in", prose)
	if rest := unescaped.ReplaceAllString(prose, ""); strings.ContainsAny(rest, "[]`~") {
		t.Errorf("markup is left in:\n%s", prose)
	}
	read := html.UnescapeString(unescaped.ReplaceAllStringFunc(prose, func(s string) string { return s[1:] }))
	for _, effect := range alive[:5] {
		must.Same(t, "", effect.FindString(read), prose)
	}
	for _, command := range alive[5:] {
		must.Same(t, "", command.FindString(text), text)
	}
}
