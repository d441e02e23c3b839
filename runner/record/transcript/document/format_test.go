package document

import (
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestFormat(t *testing.T) {
	for template, test := range map[string]struct {
		arguments []any
		want      Text
	}{
		"plain":              {nil, Text{{Text: "plain"}}},
		"a %s, %d of %d.":    {[]any{"**x** `y` %s", 2, 3}, Text{{Text: "a "}, {Text: "**x** `y` %s"}, {Text: ", 2 of 3."}}},
		"`%s`: **%s** (%s)":  {[]any{"code", "bold", Sentence("text")}, Text{{Text: "code", Style: Monospace}, {Text: ": "}, {Text: "bold", Style: Strong}, {Text: " ("}, {Text: "text", IsSentence: true}, {Text: ")"}}},
		"**job %s** of `%d`": {[]any{"x", 2}, Text{{Text: "job x", Style: Strong}, {Text: " of "}, {Text: "2", Style: Monospace}}},
		"%s`%s`**%s**%s end": {[]any{"", "", "", Text(nil)}, Text{{Text: " end"}}},
	} {
		must.Same(t, test.want, Format(template, test.arguments...), template)
	}
}
