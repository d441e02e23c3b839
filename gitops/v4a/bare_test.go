package v4a_test

import (
	"errors"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/google/go-cmp/cmp"
)

func TestBareUpdate(t *testing.T) {
	tests := map[string]struct{ text, diff, want string }{
		"keeps a final newline":           {"a\nb\n", "@@\n a\n-b\n+B\n", "a\nB\n"},
		"keeps lacking a final newline":   {"a\nb", "@@\n a\n-b\n+B\n", "a\nB"},
		"adds below the last line":        {"a\nb", "@@\n b\n+c\n", "a\nb\nc"},
		"adds at the end, terminated":     {"a\nb\n", "@@\n b\n+c\n", "a\nb\nc\n"},
		"removes the last line":           {"a\nb", "@@\n a\n-b\n", "a"},
		"without @@":                      {"a\nb\n", "-a\n+A\n", "A\nb\n"},
		"diff without a final newline":    {"a\nb\n", "@@\n-a\n+A", "A\nb\n"},
		"anchor":                          {"f\nx\ng\nx\n", "@@ g\n-x\n+y\n", "f\nx\ng\ny\n"},
		"anchor that is above":            {"f\nx\nx\n", "@@\n f\n-x\n+1\n@@ f\n-x\n+2\n", "f\n1\n2\n"},
		"end of file":                     {"x\na\nx\n", "@@\n-x\n+y\n*** End of File\n", "x\na\ny\n"},
		"end of file elsewhere":           {"a\nb\n", "@@\n-a\n+A\n*** End of File\n", "A\nb\n"},
		"end of file, without newline":    {"x\na\nx", "@@\n-x\n+y\n*** End of File\n", "x\na\ny"},
		"end of file, empty line written": {"x\na\nx\n", "@@\n-x\n+y\n \n*** End of File\n", "x\na\ny\n"},
		"CRLF stays":                      {"a\r\nb\r\n", "@@\n a\n-b\n+B\n+C\n", "a\r\nB\r\nC\r\n"},
		"replaces CRLF between LF":        {"a\nb\r\nc\n", "@@\n a\n-b\n+B\n c\n", "a\nB\r\nc\n"},
		"replaces the last line, CRLF":    {"a\nb\r\nc\r\n", "@@\n b\n-c\n+C\n", "a\nb\r\nC\r\n"},
		"removes the last line, mixed":    {"a\nb\r\nc", "@@\n-b\n-c\n+B\n", "a\nB"},
		"diff in CRLF":                    {"a\nb\n", "@@\r\n a\r\n-b\r\n+B\r\n", "a\nB\n"},
		"loose match keeps bytes":         {"\ta  \nb\n", "@@\n a\n-b\n+B\n", "\ta  \nB\n"},
		"addition at the end of file":     {"a\nb\n", "@@\n+c\n*** End of File\n", "a\nb\n\nc"},
		"the same, unterminated":          {"a\nb", "@@\n+c\n*** End of File\n", "a\nb\nc"},
		"diff in CRLF, no ending to keep": {"a", "@@\r\n a\r\n+b\r\n", "a\r\nb"},
		"diff in CRLF, empty file":        {"", "@@\r\n+a\r\n+b\r\n", "a\r\nb\r\n"},
		"empty diff":                      {"a\n", "", "a\n"},
		"end of file alone":               {"a\nb\n", "@@\n-a\n+A\n@@\n*** End of File\n", "A\nb\n"},
		"an envelope's end ends it":       {"a\n", "@@\n-a\n+A\n*** End Patch\nrubbish\n", "A\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			patch, err := v4a.ParseDiff(v4a.Update, "f", tt.diff)
			if err != nil {
				t.Fatal(err)
			}
			got, err := text(tt.text, patch)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseDiffRefusesInvalidInput(t *testing.T) {
	tests := map[string]struct {
		op   v4a.Op
		diff string
		line int
	}{
		"line of a new file without plus": {v4a.Add, "+a\nb\n", 2},
		"no hunk":                         {v4a.Update, "*** Update File: f\n@@\n-a\n", 1},
		"envelope around it":              {v4a.Update, "*** Begin Patch\n*** Update File: f\n@@\n-a\n", 1},
		"bad line":                        {v4a.Update, "@@\n-a\nb\n", 3},
		"hunk without lines":              {v4a.Update, "@@\n", 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := v4a.ParseDiff(tt.op, "f", tt.diff)
			bad, ok := errors.AsType[*v4a.ParseError](err)
			if !ok {
				t.Fatalf("error = %v, want a ParseError", err)
			}
			if bad.Line != tt.line {
				t.Errorf("at line %d, want %d: %v", bad.Line, tt.line, err)
			}
		})
	}
	if _, err := v4a.ParseDiff("rename", "f", ""); err == nil {
		t.Error("an unknown operation is taken")
	}
}

func TestBareDiffReportsMismatch(t *testing.T) {
	tests := map[string]string{
		"empty line to go is not there":   "@@\n-a\n+A\n-\n",
		"empty line to stay is not there": "@@\n-a\n+A\n\n",
		"stacked anchors, none there":     "@@ no\n@@ nor this\n-b\n+B\n",
		"stacked anchors, first missing":  "@@ no\n@@ a\n-b\n+B\n",
		"stacked anchors, second missing": "@@ a\n@@ no\n-b\n+B\n",
		"missing anchor and an empty one": "@@ no\n@@\n-b\n+B\n",
		"after an addition at the end":    "@@\n+c\n*** End of File\n@@\n-a\n",
	}
	for name, diff := range tests {
		t.Run(name, func(t *testing.T) {
			patch, err := v4a.ParseDiff(v4a.Update, "f", diff)
			if err != nil {
				t.Fatal(err)
			}
			_, err = text("a\nb\n", patch)
			if _, ok := errors.AsType[*v4a.MatchError](err); !ok {
				t.Errorf("error = %v, want a MatchError", err)
			}
		})
	}
}
