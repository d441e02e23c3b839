package lines

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestRead(t *testing.T) {
	const patch = `diff --git a/a.txt b/a.txt
index 1..2 100644
--- a/a.txt
+++ b/a.txt
@@ -3,3 +3,4 @@ func x() {
 	one
-two
+TWO

+--- a/no header
 three
@@ -40 +41 @@
-old
\ No newline at end of file
+new
diff --git "a/\303\274 x" "b/\303\274 x"
new file mode 100644
--- /dev/null
+++ "b/\303\274 x"
@@ -0,0 +1 @@
+diff --git a/b b/b
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-+++ b/no header
diff --git a/bin b/bin
GIT binary patch
literal 3
+x
`
	got := must.Get(Read(strings.NewReader(strings.Replace(patch, "\n\n+---", "\n \n+---", 1))))(t)
	want := &Diff{Files: []File{
		{
			Path:    "a.txt",
			Added:   []Line{{4, "TWO", "one"}, {6, "--- a/no header", "TWO"}, {41, "new", ""}},
			Removed: []Line{{4, "two", "one"}, {40, "old", ""}},
		},
		{Path: "ü x", Added: []Line{{1, "diff --git a/b b/b", ""}}},
		{Path: "gone", Removed: []Line{{1, "+++ b/no header", ""}}},
		{},
	}}
	must.Same(t, want, got)
}

func TestReadIsBounded(t *testing.T) {
	long := "+" + strings.Repeat("x", 3*maxLineBytes)
	patch := "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n" + long + "\n" + strings.Repeat("+y\n", maxLines+5)
	got := must.Get(Read(strings.NewReader(patch)))(t)
	if f := got.Files[0]; len(f.Added) != maxLines || len(f.Added[0].Text) != maxLineBytes || got.OmittedLines != 6 {
		t.Errorf("%d lines, the first of %d bytes, %d left", len(f.Added), len(f.Added[0].Text), got.OmittedLines)
	}
}
