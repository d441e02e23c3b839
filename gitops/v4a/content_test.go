package v4a_test

import (
	"bufio"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/policy/must"
)

func hunksOf(d v4a.Diff) string {
	var b strings.Builder
	w := bufio.NewWriter(&b)
	d.WriteHunks(w)
	_ = w.Flush()
	return b.String()
}

func TestCompare(t *testing.T) {
	tests := map[string]struct{ before, after, want string }{
		"the same":                 {"a\nb\n", "a\nb\n", ""},
		"both ends are equal":      {"a\nb\nc\n", "a\nB\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"},
		"three lines around":       {"1\n2\n3\n4\n5\n6\n7\n8\n", "1\n2\n3\n4\n6\n7\n8\n", "@@ -2,7 +2,6 @@\n 2\n 3\n 4\n-5\n 6\n 7\n 8\n"},
		"from nothing":             {"", "a\n", "@@ -0,0 +1 @@\n+a\n"},
		"to nothing":               {"a\nb\n", "", "@@ -1,2 +0,0 @@\n-a\n-b\n"},
		"final newline comes":      {"a", "a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"},
		"final newline goes":       {"a\nb\n", "a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n"},
		"CR alone ends no line":    {"a\rb\n", "a\rB\n", "@@ -1 +1 @@\n-a\rb\n+a\rB\n"},
		"lines of both are longer": {"a\nx\nx\n", "a\nx\n", "@@ -1,3 +1,2 @@\n a\n x\n-x\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d := v4a.Compare(tt.before, tt.after)
			must.Same(t, tt.want, hunksOf(d))
			must.Same(t, tt.want == "", d.Empty())
			added, removed := strings.Count(tt.want, "\n+"), strings.Count(tt.want, "\n-")
			if d.Added != added || d.Removed != removed {
				t.Errorf("%d added, %d removed, want %d and %d", d.Added, d.Removed, added, removed)
			}
		})
	}
}

func TestNotesLooseAndAmbiguousMatches(t *testing.T) {
	tests := map[string]struct {
		before, hunks string
		want          []string
	}{
		"nothing to tell":            {"a\nb\n", "@@\n a\n+x\n", nil},
		"indentation":                {"  a\nb\n", "@@\n a\n+x\n", []string{"a hunk fits line 1 only with indentation left aside; what it adds stands as the patch has it, so look at that."}},
		"dashes":                     {"b\na – c\n", "@@\n a - c\n+x\n", []string{"a hunk fits line 2 only with the kind of its dashes, quotes or spaces left aside; what it adds stands as the patch has it, so look at that."}},
		"blanks at the end":          {"a  \nb\n", "@@\n a\n+x\n", nil},
		"quotes":                     {"x = “a”\n", "@@\n-x = \"a\"\n+x = \"b\"\n", []string{"a hunk fits line 1 only with the kind of its dashes, quotes or spaces left aside; what it adds stands as the patch has it, so look at that."}},
		"tabs, second hunk":          {"a\n\tb\nc\n", "@@\n-a\n+A\n@@\n-  b\n+  B\n", []string{"a hunk fits line 2 only with indentation left aside; what it adds stands as the patch has it, so look at that."}},
		"nothing is added":           {"  a\nb\n", "@@\n-a\n", nil},
		"two places, named":          {"f\na\nb\na\n", "@@ f\n-a\n+x\n", []string{"a hunk was applied where others may be meant: line 2 (line 4 fits too). Make sure that the place is right."}},
		"two anchors of an addition": {"f\na\nf\n", "@@ f\n+x\n", []string{"a hunk was applied where others may be meant: line 1 (line 3 fits too). Make sure that the place is right."}},
		"one above the hunk before":  {"a\nb\na\n", "@@\n-b\n+x\n@@\n-a\n+x\n", []string{"a hunk was applied where others may be meant: line 3 (line 1 fits too, above the hunk before). Make sure that the place is right."}},
		"two places, said":           {"a\nb\na\nb\na\n", "@@\n-b\n+B\n@@ a\n-b\n+B\n", nil},
		"two, one exactly":           {" a\nb\na\n", "@@\n-a\n+x\n", []string{"a hunk was applied where others may be meant: line 3 (line 1 fits too, with indentation left aside). Make sure that the place is right."}},
		"two, by line number":        {"a\nb\na\n", "@@ -3 +3 @@\n-a\n+x\n", []string{"a hunk was applied where others may be meant: line 3 (line 1 fits too). Make sure that the place is right."}},
		"three, by line numbers":     {"a\nb\na\nb\na\n", "@@ -1 +1 @@\n-a\n+x\n@@ -3 +3 @@\n-a\n+y\n", []string{"a hunk was applied where others may be meant: line 3 (line 5 fits too). Make sure that the place is right."}},
		"two, by one far off":        {"a\nb\na\n", "@@ -4 +4 @@\n-a\n+x\n", []string{"a hunk was applied where others may be meant: line 3 (line 1 fits too). Make sure that the place is right."}},
		"each of two places":         {"a\nb\na\n", "@@\n-a\n+x\n@@\n-a\n+y\n", nil},
		"many places":                {"f\n" + strings.Repeat("a\nb\n", 11), "@@ f\n-a\n+x\n", []string{"a hunk was applied where others may be meant: line 2 (line 4, line 6, … fits too). Make sure that the place is right."}},
		"line numbers":               {"a\nb\n", "@@ -1 +1 @@\n-a\n+x\n@@ -2 +2 @@\n-b\n+y\n", nil},
		"parent above":               {"A\na\nb\n", "@@ A\n-a\n+x\n@@ A\n-b\n+y\n", nil},
		"parent above, lines before": {"A\nx\ny\nx\n", "@@\n-y\n+Y\n@@ A\n-x\n+X\n", []string{"a hunk was applied where others may be meant: line 4 (line 2 fits too, above the hunk before). Make sure that the place is right.", `an "@@" line names line 1, above the hunk before it; the hunk was looked for further below.`}},
		"the end of two":             {"a\nb\na\n", "@@\n-a\n+x\n*** End of File\n", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, notes, err := parsed(t, "*** Update File: f\n"+tt.hunks)[0].Update(t.Context(), tt.before)
			must.Do(t, err)
			must.Same(t, tt.want, notes)
		})
	}
}

func TestPaths(t *testing.T) {
	patch := parsed(t, "*** Add File: b\n+x\n*** Update File: a\n*** Move to: ./b\n@@\n x\n*** Delete File: b\n*** Delete File: a\n")
	must.Same(t, []string{"b", "a", "./b"}, v4a.Paths(patch))
}
