package markdown

import "testing"

func TestLinked(t *testing.T) {
	known := []Known{
		{"Pull request #2", Link{"Pull request #2", "https://github.com/o/r/pull/2"}},
		{"0123456789ab", Link{"`0123456789ab`", "https://github.com/o/r/commit/0123456789ab"}},
		{"o/r#1", Link{"o/r#1", "https://github.com/o/r/issues/1"}},
	}
	for s, want := range map[string]string{
		"Pull request #2 was created.":                   "[Pull request #2](https://github.com/o/r/pull/2) was created.",
		"The change is commit 0123456789ab on main.":     "The change is commit [`0123456789ab`](https://github.com/o/r/commit/0123456789ab) on main.",
		"Pull request #20 and #2, of o/r#12 and o/r#1/x": "Pull request #20 and #2, of o/r#12 and o/r#1/x",
		"x0123456789ab 0123456789abc too/r#1":            "x0123456789ab 0123456789abc too/r#1",
		"(o/r#1)":                                        "([o/r#1](https://github.com/o/r/issues/1))",
		"!o/r#1":                                         "!&#8203;[o/r#1](https://github.com/o/r/issues/1)",
		"o/r#1 o/r#1":                                    "[o/r#1](https://github.com/o/r/issues/1) [o/r#1](https://github.com/o/r/issues/1)",
		"":                                               "",
		"éo/r#1":                                         "éo/r#1",
		"<b> @x [o/r#1](https://evil.example)":           "&lt;b> @&#8203;x \\[[o/r#1](https://github.com/o/r/issues/1)\\](https:&#8203;//evil.example)",
	} {
		if got := Linked(s, known); got != want && !(want == s && got == Text(s)) {
			t.Errorf("%q is %q, want %q", s, got, want)
		}
	}
}
