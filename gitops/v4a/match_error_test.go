package v4a_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestMatchErrorExplainsMismatch(t *testing.T) {
	text := "package a\n\nfunc f() {\n\tone()\n\ttwo()\n}\n\nfunc g() {\n\tone()\n\tthree()\n}\n"
	tests := map[string]struct{ hunks, want string }{
		"a line differs": {
			"@@\n func g() {\n \tone()\n-\tthere()\n+\tfour()\n }\n",
			"f: hunk 1 (line 6 of the patch) expects lines that are not in the file\n" +
				"nearest place: line 8 (- expected by the patch, + in the file)\n func g() {\n \tone()\n-\tthere()\n+\tthree()\n }",
		},
		"a line was left out": {
			"@@\n func f() {\n-\ttwo()\n",
			"f: hunk 1 (line 5 of the patch) expects lines that are not in the file\n" +
				"nearest place: line 3 (- expected by the patch, + in the file)\n func f() {\n+\tone()\n \ttwo()",
		},
		"only similar": {
			"@@\n-\tthreee()\n",
			"f: hunk 1 (line 4 of the patch) expects lines that are not in the file\n" +
				"nearest place: line 10 (- expected by the patch, + in the file)\n-\tthreee()\n+\tthree()",
		},
		"nothing like it": {
			"@@\n-zzzzzzzz\n",
			"f: hunk 1 (line 4 of the patch) expects lines that are not in the file; the file has nothing like them. Expected:\n-zzzzzzzz",
		},
		"out of order": {
			"@@\n-\tthree()\n@@\n-\ttwo()\n",
			"f: hunk 2 (line 6 of the patch) expects lines that are not in the file below line 10, where the hunk or \"@@\" line before it is; they are at line 5: put hunks in the order of the file, and \"@@\" lines above what they are for",
		},
		"not at the end": {
			"@@\n-\ttwo()\n*** End of File\n",
			"f: hunk 1 (line 4 of the patch) expects lines that are not in the file; they are at line 5, which is not the end of the file: leave \"*** End of File\" out",
		},
		"line numbers": {
			"@@ -1,2 +1,2 @@\n+\ttwo()\n",
			"f: hunk 1 (line 3 of the patch) names a line that is not in the file: \"-1,2 +1,2 @@\"; \"@@\" takes no line numbers: a whole line of the file follows it, or nothing",
		},
		"more than one place": {
			"@@\n-\tone()\n",
			"f: hunk 1 (line 4 of the patch) fits more than one place; its lines are at line 4 and line 9: name a line above those that are meant, \"@@ \" and the whole line",
		},
		"part of a line": {
			"@@ func g\n-\ttwo()\n",
			"f: hunk 1 (line 3 of the patch) names a line that is not in the file: \"func g\"; \"@@ \" takes a whole line of the file, and line 8 has more: \"func g() {\"",
		},
		"context above": {
			"@@ func g() {\n@@ func f() {\n-\ttwo()\n",
			"f: hunk 1 (line 5 of the patch) expects lines that are not in the file below line 8, where the hunk or \"@@\" line before it is; they are at line 5: put hunks in the order of the file, and \"@@\" lines above what they are for",
		},
		"context below an empty one": {
			"@@\n@@ func f() {\n@@\n@@ func h() {\n-\ttwo()\n",
			"f: hunk 1 (line 6 of the patch) names a line that is not in the file below line 3, where the hunk or \"@@\" line before it is: \"func h() {\"\n" +
				"nearest place: line 8 (- expected by the patch, + in the file)\n-func h() {\n+func g() {",
		},
		"context differs": {
			"@@ func gg() {\n-\ttwo()\n",
			"f: hunk 1 (line 3 of the patch) names a line that is not in the file: \"func gg() {\"\n" +
				"nearest place: line 8 (- expected by the patch, + in the file)\n-func gg() {\n+func g() {",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := updated(t, text, tt.hunks)
			must.Same(t, tt.want, fmt.Sprint(err))
		})
	}
}

// A difference far inside a long line is shown, on both sides, and no character
// is cut in two.
func TestMatchErrorShowsDifference(t *testing.T) {
	long := strings.Repeat("é", 150)
	line := "\t" + long + "ONE" + long
	tests := map[string]struct{ hunks, want string }{
		"a hunk": {
			"@@\n- " + long + "TWO" + long + "\n",
			"-…" + long[:40] + "TWO" + long[:116] + "…\n+…" + long[:40] + "ONE" + long[:116] + "…",
		},
		"a context": {
			"@@ " + long + "TWO" + long + "\n-x\n",
			"-…" + long[:40] + "TWO" + long[:116] + "…\n+…" + long[:40] + "ONE" + long[:116] + "…",
		},
		"more than a context": {
			"@@ " + long + "\n-x\n", `line 1 has more: "…` + long[:40] + "ONE" + long[:116] + `…"`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := updated(t, line+"\n", tt.hunks)
			if err == nil || !strings.HasSuffix(err.Error(), tt.want) {
				t.Errorf("error = %v\nwant the end %s", err, tt.want)
			}
		})
	}
}

// An error stays short however long the lines and the hunk are.
func TestMatchErrorIsShort(t *testing.T) {
	long := strings.Repeat("long \xff", 10_000)
	var hunk, file bytes.Buffer
	for range 300 {
		hunk.WriteString("-" + long[1:] + "\n")
		file.WriteString(long + "\n")
	}
	_, err := updated(t, file.String(), "@@\n"+hunk.String())
	if err == nil || len(err.Error()) > 10_000 {
		t.Errorf("error of %d bytes", len(err.Error()))
	}
}
