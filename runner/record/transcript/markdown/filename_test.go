package markdown

import (
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestFileNamesAreDistinctAndHarmless(t *testing.T) {
	seen := map[string]string{}
	for path, want := range map[string]string{
		"greet/greet.go":    "greet/greet.go",
		"Prüfung/日本 x.txt":  "Prüfung/日本 x.txt",
		"a\nb":              `"a\nb"`,
		"a\tb":              `"a\tb"`,
		"a\rb":              `"a\rb"`,
		"a b":               "a b",
		`a\nb`:              `"a\\nb"`,
		`"a\nb"`:            `"\"a\\nb\""`,
		"a ":                `"a "`,
		"a":                 "a",
		"":                  `""`,
		"a\x1b[31mb":        `"a\x1b[31mb"`,
		"a\x7fb":            `"a\x7fb"`,
		"a\u009bb":          `"a\u009bb"`,
		"a\xffb":            `"a\xffb"`,
		"a\ufffdb":          "a\ufffdb",
		"x\u202egnp.exe":    `"x\u202egnp.exe"`,
		"x\u2066y\u2069":    `"x\u2066y\u2069"`,
		"x\u200ey":          `"x\u200ey"`,
		"x\u200fy":          `"x\u200fy"`,
		"x\u061cy":          `"x\u061cy"`,
		"x\u200by":          `"x\u200by"`,
		"x\u2028y":          `"x\u2028y"`,
		"x\u00ady":          `"x\u00ady"`,
		"x\ufe0fy":          `"x\ufe0fy"`,
		"x\U000e0041y":      `"x\U000e0041y"`,
		"x\u3164y":          `"x\u3164y"`,
		"x\u2800y":          `"x\u2800y"`,
		"::error::x":        "::error::x",
		"`code` <b> | @you": "`code` <b> | @you",
	} {
		got := FileName(path)
		must.Same(t, want, got, "FileName", path)
		if other, taken := seen[got]; taken {
			t.Errorf("%q and %q are both shown as %s", path, other, got)
		}
		seen[got] = path
	}
}
