package claims

import (
	"slices"
	"testing"
)

func TestUnfounded(t *testing.T) {
	paths := []string{"src/parse.go", "docs/a.md"}
	for summary, want := range map[string][]string{
		"Fixed the parser in `src/parse.go`.":                               nil,
		"Updated `parse.go` and `docs/a.md`.":                               nil,
		"Updated `parse.go` and `README.md`.":                               {"README.md"},
		"- Added tests in `src/parse_test.go`":                              {"src/parse_test.go"},
		"I have updated `CHANGELOG.md`; I also fixed `src/parse.go`.":       {"CHANGELOG.md"},
		"Updated `src/parse.go`. `README.md` was not changed.":              nil,
		"Fixed `parse.go` without touching `README.md`.":                    nil,
		"The parser follows `spec.md`. You may want to update `README.md`.": nil,
		"Added a call of `fmt.Print` and `os.path` to `parse.go`":           nil,
		"```\nUpdated `x.md`\n```":                                          nil,
		"Added README.md":                                                   nil,
	} {
		if got := Unfounded(summary, paths); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", summary, got, want)
		}
	}
}
