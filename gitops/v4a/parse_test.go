package v4a_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/policy/must"
)

const deletion = "*** Begin Patch\n*** Delete File: f\n*** End Patch"

func TestParseTolerates(t *testing.T) {
	tests := map[string]string{
		"plain":                      deletion,
		"blanks around":              "\n \t" + deletion + "\n\n",
		"padded markers":             "  *** Begin Patch \n*** Delete File: f\n\t*** End Patch  ",
		"CRLF":                       strings.ReplaceAll(deletion, "\n", "\r\n"),
		"heredoc":                    "<<EOF\n" + deletion + "\nEOF",
		"heredoc in single quotes":   "<<'EOF'\n" + deletion + "\nEOF\n",
		"heredoc in double quotes":   "<<\"EOF\"\n" + deletion + "\nEOF",
		"heredoc with CRLF":          "<<'EOF'\r\n" + strings.ReplaceAll(deletion, "\n", "\r\n") + "\r\nEOF\r\n",
		"heredoc with the program":   "apply_patch <<'EOF'\n" + deletion + "\nEOF",
		"fence":                      "```\n" + deletion + "\n```",
		"fence with a language":      "```diff\n" + deletion + "\n```\n",
		"cell of a notebook":         "%%bash\napplypatch <<\"EOF\"\n" + deletion + "\nEOF",
		"heredoc with a long ending": "<<EOF\n" + deletion + "\nxxEOF",
		"end twice":                  deletion + "\n*** End Patch\n",
		"end twice, blanks between":  deletion + " \n\n  *** End Patch\n",
	}
	want := []v4a.Section{{Op: v4a.Delete, Path: "f", Line: 2}}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			patch := must.Get(v4a.Parse(text))(t)
			must.Same(t, want, patch)
		})
	}
}

// malformed are patches with the line at which they stop being one.
var malformed = map[string]struct {
	text string
	line int
}{
	"empty":                           {"", 1},
	"no begin":                        {"*** Delete File: f\n*** End Patch", 1},
	"no end":                          {"*** Begin Patch\n*** Delete File: f", 2},
	"begin only":                      {"*** Begin Patch", 1},
	"no sections":                     {"*** Begin Patch\n*** End Patch", 1},
	"prose before":                    {"Here it is:\n" + deletion, 1},
	"prose after":                     {deletion + "\nDone.", 4},
	"fence without an end":            {"```\n" + deletion, 1},
	"text before a fence":             {"Here:\n```\n" + deletion + "\n```", 1},
	"other heredoc":                   {"<<'PATCH'\n" + deletion + "\nPATCH", 1},
	"quotes that differ":              {"<<\"EOF'\n" + deletion + "\nEOF", 1},
	"bad header":                      {envelope("*** Frobnicate File: foo\n"), 2},
	"header without a path":           {envelope("*** Add File: \n+x\n"), 2},
	"empty line between sections":     {envelope("*** Delete File: f\n\n*** Delete File: g\n"), 3},
	"empty line before sections":      {envelope("\n*** Delete File: g\n"), 2},
	"empty line in an added file":     {envelope("*** Add File: f\n+x\n\n+y\n"), 4},
	"added line without plus":         {envelope("*** Add File: f\nx\n"), 3},
	"lines after a deleted file":      {envelope("*** Delete File: f\n-x\n"), 3},
	"update without hunks":            {envelope("*** Update File: f\n"), 2},
	"move without hunks":              {envelope("*** Update File: f\n*** Move to: g\n"), 2},
	"hunk without lines":              {envelope("*** Update File: f\n@@\n"), 3},
	"hunk without lines, then header": {envelope("*** Update File: f\n@@ x\n*** Delete File: g\n"), 3},
	"@@ without a blank":              {envelope("*** Update File: f\n@@def\n-x\n"), 3},
	"bad line in a hunk":              {envelope("*** Update File: f\n@@\n-x\ny\n"), 5},
	"note on the final newline":       {envelope("*** Update File: f\n@@\n-x\n\\ No newline at end of file\n"), 5},
	"end of file without lines":       {envelope("*** Update File: f\n@@\n*** End of File\n"), 4},
	"end of file twice":               {envelope("*** Update File: f\n@@\n-x\n*** End of File\n*** End of File\n"), 6},
	"line after end of file":          {envelope("*** Update File: f\n@@\n-x\n*** End of File\n-y\n"), 6},
	"move after a hunk":               {envelope("*** Update File: f\n@@\n-x\n*** Move to: g\n"), 5},
	"move twice":                      {envelope("*** Update File: f\n*** Move to: g\n*** Move to: h\n@@\n-x\n"), 4},
	"environment without an id":       {envelope("*** Environment ID: \n*** Delete File: f\n"), 2},
	"environment twice":               {envelope("*** Environment ID: a\n*** Environment ID: b\n*** Delete File: f\n"), 3},
	"environment after a section":     {envelope("*** Delete File: f\n*** Environment ID: a\n"), 3},
	"text after the end":              {envelope("*** Delete File: f\n*** End Patch\n*** Delete File: g\n"), 3},
}

func TestParseRefuses(t *testing.T) {
	for name, tt := range malformed {
		t.Run(name, func(t *testing.T) {
			_, err := v4a.Parse(tt.text)
			bad, ok := errors.AsType[*v4a.ParseError](err)
			if !ok {
				t.Fatalf("error = %v, want a ParseError", err)
			}
			must.Same(t, tt.line, bad.Line, "at line", err)
		})
	}
}
