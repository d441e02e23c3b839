package progress

import (
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestPrintableEscapesControls(t *testing.T) {
	for text, want := range map[string]string{
		"went well: 日本 é":          "went well: 日本 é",
		"two\nlines\tand\r\nmore":  "two lines and  more",
		"\x1b[31mred\x1b]0;x\a":    "␛[31mred␛]0;x␇",
		"x\u202egnp.exe":           "x‹U+202E›gnp.exe",
		"a\u2066b\u2069c\u200fd":   "a‹U+2066›b‹U+2069›c‹U+200F›d",
		"z\u200bw\u061c":           "z‹U+200B›w‹U+061C›",
		"del\x7f c1\u009b bad\xff": "del␡ c1\uFFFD bad\uFFFD",
	} {
		must.Same(t, want, Printable(text), text)
	}
}
