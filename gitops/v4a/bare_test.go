package v4a_test

import (
	"errors"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/policy/must"
)

func TestAppliesBareDiffs(t *testing.T) {
	tests := map[string]struct {
		op               v4a.Op
		text, diff, want string
	}{
		"keeps a final newline":           {v4a.Update, "a\nb\n", "@@\n a\n-b\n+B\n", "a\nB\n"},
		"keeps lacking a final newline":   {v4a.Update, "a\nb", "@@\n a\n-b\n+B\n", "a\nB"},
		"adds below the last line":        {v4a.Update, "a\nb", "@@\n b\n+c\n", "a\nb\nc"},
		"adds at the end, terminated":     {v4a.Update, "a\nb\n", "@@\n b\n+c\n", "a\nb\nc\n"},
		"removes the last line":           {v4a.Update, "a\nb", "@@\n a\n-b\n", "a"},
		"without @@":                      {v4a.Update, "a\nb\n", "-a\n+A\n", "A\nb\n"},
		"diff without a final newline":    {v4a.Update, "a\nb\n", "@@\n-a\n+A", "A\nb\n"},
		"end of file":                     {v4a.Update, "x\na\nx\n", "@@\n-x\n+y\n*** End of File\n", "x\na\ny\n"},
		"end of file elsewhere":           {v4a.Update, "a\nb\n", "@@\n-a\n+A\n*** End of File\n", "A\nb\n"},
		"end of file, without newline":    {v4a.Update, "x\na\nx", "@@\n-x\n+y\n*** End of File\n", "x\na\ny"},
		"end of file, empty line written": {v4a.Update, "x\na\nx\n", "@@\n-x\n+y\n \n*** End of File\n", "x\na\ny\n"},
		"CRLF stays":                      {v4a.Update, "a\r\nb\r\n", "@@\n a\n-b\n+B\n+C\n", "a\r\nB\r\nC\r\n"},
		"replaces CRLF between LF":        {v4a.Update, "a\nb\r\nc\n", "@@\n a\n-b\n+B\n c\n", "a\nB\r\nc\n"},
		"replaces the last line, CRLF":    {v4a.Update, "a\nb\r\nc\r\n", "@@\n b\n-c\n+C\n", "a\nb\r\nC\r\n"},
		"removes the last line, mixed":    {v4a.Update, "a\nb\r\nc", "@@\n-b\n-c\n+B\n", "a\nB"},
		"diff in CRLF":                    {v4a.Update, "a\nb\n", "@@\r\n a\r\n-b\r\n+B\r\n", "a\nB\n"},
		"loose match keeps bytes":         {v4a.Update, "\ta  \nb\n", "@@\n a\n-b\n+B\n", "\ta  \nB\n"},
		"addition at the end of file":     {v4a.Update, "a\nb\n", "@@\n+c\n*** End of File\n", "a\nb\n\nc"},
		"the same, unterminated":          {v4a.Update, "a\nb", "@@\n+c\n*** End of File\n", "a\nb\nc"},
		"diff in CRLF, no ending to keep": {v4a.Update, "a", "@@\r\n a\r\n+b\r\n", "a\r\nb"},
		"diff in CRLF, empty file":        {v4a.Update, "", "@@\r\n+a\r\n+b\r\n", "a\r\nb\r\n"},
		"empty diff":                      {v4a.Update, "a\n", "", "a\n"},
		"end of file alone":               {v4a.Update, "a\nb\n", "@@\n-a\n+A\n@@\n*** End of File\n", "A\nb\n"},
		"an envelope's end ends it":       {v4a.Update, "a\n", "@@\n-a\n+A\n*** End Patch\nrubbish\n", "A\n"},

		// These are the kinds of diffs that the tests of OpenAI's Agents SDK apply.
		"additions to nothing":                 {v4a.Update, "", "@@\n+one\n+two", "one\ntwo\n"},
		"new file, ending in an empty line":    {v4a.Add, "", "+one\n+two\n+", "one\ntwo\n"},
		"new file, without a final newline":    {v4a.Add, "", "+one\n+\n+two", "one\n\ntwo"},
		"no final newline, lines like markers": {v4a.Update, "- a\n- b\n- c", "@@\n - a\n-- b\n-- c\n+- [x] b\n+- [x] c", "- a\n- [x] b\n- [x] c"},
		"below an anchor":                      {v4a.Update, "one\ntwo\nthree\n", "@@ one\n-two\n+2\n three", "one\n2\nthree\n"},
		"a line goes":                          {v4a.Update, "one\ntwo\nthree\n", "@@ one\n-two\n three", "one\nthree\n"},
		"two anchors":                          {v4a.Update, "class A:\n    def f():\n        pass\n\ndef main():\n    a.f()\n", "@@ class A:\n-    def f():\n+    def g():\n         pass\n@@ def main():\n-    a.f()\n+    a.g()", "class A:\n    def g():\n        pass\n\ndef main():\n    a.g()\n"},
		"stacked anchors, in order":            {v4a.Update, "class A\n    f\n        x\nclass B\n    f\n        x\n", "@@ class A\n@@     f\n-        x\n+        1\n@@ class B\n@@     f\n-        x\n+        2", "class A\n    f\n        1\nclass B\n    f\n        2\n"},
		"stacked anchors narrow the place":     {v4a.Update, "A\n f\n x\nB\n g\n x\n f\n x\n", "@@ B\n@@  f\n- x\n+ y", "A\n f\n x\nB\n g\n x\n f\n y\n"},
		"an anchor that is nowhere":            {v4a.Update, "a\nb\n", "@@ no\n-b\n+B", "a\nB\n"},
		"stacked on an anchor, an empty one":   {v4a.Update, "A\n f\n x\n", "@@ A\n@@\n- x\n+ y", "A\n f\n y\n"},
		"parent above the place reached":       {v4a.Update, "A\nf\nx\ng\nx\n", "@@ A\n f\n-x\n+1\n@@ A\n g\n-x\n+2", "A\nf\n1\ng\n2\n"},
		"line numbers":                         {v4a.Update, "one\ntwo\n", "@@ -1,2 +1,2 @@\n one\n-two\n+2", "one\n2\n"},
		"no anchor, no final newline":          {v4a.Update, "one\ntwo", "-one\n+1", "1\ntwo"},
		"insertion between empty lines":        {v4a.Update, "a\n\nb\n\nc", " a\n+x\n\n b\n\n c", "a\nx\n\nb\n\nc"},
		"last line goes, no final newline":     {v4a.Update, "a\nb\nc", " a\n-b\n c", "a\nc"},
		"last lines change, no final newline":  {v4a.Update, "a\nb\nc", " a\n-b\n-c\n+B\n+C", "a\nB\nC"},
		"the same line goes and comes":         {v4a.Update, "a\n\nb", "-a\n+a\n \n b", "a\n\nb"},
		"several changes in a hunk":            {v4a.Update, "f {\n 1\n}\n\ng {\n 2\n}", "@@\n-f {\n- 1\n-}\n+f {\n+ one\n+}\n \n g {\n- 2\n-}\n+ two\n+}", "f {\n one\n}\n\ng {\n two\n}"},
		"context alone":                        {v4a.Update, "a", " a", "a"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			patch, err := v4a.ParseDiff(tt.op, "f", tt.diff)
			must.Do(t, err)
			got := patch[0].Content
			if tt.op == v4a.Update {
				if got, err = text(tt.text, patch); err != nil {
					t.Fatal(err)
				}
			}
			must.Same(t, tt.want, got)
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
			must.Same(t, tt.line, bad.Line, "at line", err)
		})
	}
	must.Fail(t, "", must.Err(v4a.ParseDiff("rename", "f", "")), "an unknown operation is taken")
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
			must.Do(t, err)
			_, err = text("a\nb\n", patch)
			if _, ok := errors.AsType[*v4a.MatchError](err); !ok {
				t.Errorf("error = %v, want a MatchError", err)
			}
		})
	}
}
