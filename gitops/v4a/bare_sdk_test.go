package v4a_test

import (
	"testing"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/google/go-cmp/cmp"
)

// TestAppliesAgentsSDKDiffs has each kind of diff that the tests of OpenAI's Agents SDK
// apply.
func TestAppliesAgentsSDKDiffs(t *testing.T) {
	tests := map[string]struct {
		op               v4a.Op
		text, diff, want string
	}{
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
		"empty diff":                           {v4a.Update, "a\nb", "", "a\nb"},
		"context alone":                        {v4a.Update, "a", " a", "a"},
		"CRLF":                                 {v4a.Update, "one\r\ntwo\r\n", "@@\n one\n-two\n+2", "one\r\n2\r\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			patch, err := v4a.ParseDiff(tt.op, "f", tt.diff)
			if err != nil {
				t.Fatal(err)
			}
			got := patch.Sections[0].Content
			if tt.op == v4a.Update {
				if got, err = text(tt.text, patch); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
