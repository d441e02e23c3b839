package clip

import (
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		" a\tb\r\nc\rd\v\u2028e ":          "a\tb\nc\nd\n\ne",
		"a\x1b[31m\u202eb\u200b\U000E0041": "a[31mb",
		"a\U000E0100\U000E01EF\ufe00b":     "ab",
		"a\u3164\u115f\u034f\uffa0b":       "ab",
		"\u26a0\ufe0f e\u0301":             "\u26a0\ufe0f e\u0301",
		"a\xff":                            "a\uFFFD",
	} {
		must.Same(t, want, Visible(text, 100), text)
	}
}
