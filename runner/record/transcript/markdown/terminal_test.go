package markdown

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestScreenKeepsFinalText(t *testing.T) {
	for line, want := range map[string]string{
		"":                                   "",
		"plain text\r\n":                     "plain text",
		"10 %\r50 %\r100 %":                  "100 %",
		"10 %\r100 %\r":                      "100 %",
		"\x1b[31mred\x1b[0m \x1b[?25l.":      "red .",
		"\x1b]0;title\a named":               " named",
		"\x1b]8;;http://x.example\x1b\\link": "link",
		"\x1bP1;2|dcs\x1b\\after":            "after",
		"open \x1b]0;and no end":             "open ",
		"\x1b(Bcharset \x1b7saved\x1b=":      "charset saved",
		"two \x1b\x1b[1mbold":                "two bold",
		"bell\a and \x00":                    "bell␇ and ␀",
		"\u202egnol":                         "gnol",
		"torn \x1b[":                         "torn [",
	} {
		must.Same(t, want, Screen(line), line)
	}
}

func FuzzScreen(f *testing.F) {
	for _, seed := range append([]string{"a\x1b[1mb", "\x1b]0;x\a", "a\rb\r"}, seeds...) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got := Screen(s); strings.ContainsAny(got, "\x1b\r\a\x00") || visibleText(got) != got {
			t.Errorf("Screen(%q) is %q", s, got)
		}
	})
}
