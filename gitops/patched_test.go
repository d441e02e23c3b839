package gitops_test

import (
	"bytes"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// git would wait for the pipe's writer.
func TestPackReadsNoFileOfCheckout(t *testing.T) {
	t.Parallel()
	r, c, cs := landing(t)
	must.Do(t, syscall.Mkfifo(r.Path(".gitattributes"), 0o666))
	must.Do(t, c.WritePack(t.Context(), cs, new(bytes.Buffer)))
	must.Do(t, c.WritePatch(t.Context(), cs, new(bytes.Buffer)))
}

func TestPatchRecreatesTree(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	binary := "\x00\x01\x02" + strings.Repeat("binary", 100)
	for name, text := range map[string]string{
		"text": "one\ntwo\nthree\n", "binary": binary, "gone": "gone\n", "moves": strings.Repeat("moves\n", 20), "tool": "tool\n",
		"becomes/folder": "no\n", "becomes-folder": "yes\n", "without": "an end", "crlf": "a\r\nb\r\n",
	} {
		r.Write(name, text)
	}
	r.Commit("base")
	c := r.open()
	snap := snapshot(t, c)
	r.Write("text", "one\n2\nthree\n")
	r.Write("binary", binary+"\x00more")
	r.Write("new/binary", "\x00\xff\xfe")
	r.Write("new/empty", "")
	r.Write("new/name with \"quotes\"\nand lines", "x\n")
	r.Write("without", "an end,\nor two")
	r.Write("crlf", "a\r\nc\r\n")
	r.Remove("gone", "moves", "becomes/folder", "becomes", "becomes-folder")
	r.Write("moved", strings.Repeat("moves\n", 20))
	r.Write("becomes", "a file\n")
	r.Write("becomes-folder/now", "yes\n")
	r.Chmod("tool", 0o755)
	r.Link("text", "link")
	cs := changes(t, c, snap)
	var patch bytes.Buffer
	must.Do(t, c.WritePatch(t.Context(), cs, &patch))
	again := must.Get(c.ApplyPatch(t.Context(), cs.Base.Tree, patch.Bytes()))(t)
	must.Same(t, nameStatus(cs), nameStatus(again), "files")
	must.Same(t, cs.Tree, again.Tree, "tree")
	must.Fail(t, "", must.Err(c.ApplyPatch(t.Context(), cs.Tree, patch.Bytes())), "the patch applies twice")
}

// The patch of a large change is not kept in memory.
func TestPatchOfLargeChange(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.Write("large", strings.Repeat("line\n", 1<<18))
	r.Commit("base")
	c := r.open()
	snap := snapshot(t, c)
	r.Write("large", strings.Repeat("line\n", 1<<18)+"one more\n")
	r.Write("small", "s\n")
	cs := changes(t, c, snap)
	must.Same(t, 2, cs.Insertions, "lines added")
	must.Same(t, 0, cs.Deletions, "lines added")
	var patch bytes.Buffer
	must.Do(t, c.WritePatch(t.Context(), cs, &patch))
	again := must.Get(c.ApplyPatch(t.Context(), cs.Base.Tree, patch.Bytes()))(t)
	must.Same(t, cs.Tree, again.Tree, "tree")
}

func TestPatchAppliesAtMovedLines(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.Write("a", "1\n2\n3\n4\n5\n6\n7\n8\n")
	r.Write("b", "b\n")
	r.Commit("base")
	c := r.open()
	snap := snapshot(t, c)
	r.Write("a", "0\n1\n2\n3\n4\n5\n6\n7\n8\n")
	r.Write("other", "other\n")
	now := changes(t, c, snap)
	patch := "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -4,3 +4,3 @@\n 4\n-5\n+five\n 6\n"
	cs := must.Get(c.ApplyPatch(t.Context(), now.Tree, []byte(patch)))(t)
	must.Same(t, "0\n1\n2\n3\n4\nfive\n6\n7\n8\n", string(must.Get(c.ReadFile(cs.Tree, "a", 100))(t)), "a is")
	must.Same(t, []string{"M a"}, nameStatus(cs), "files")
	must.Same(t, "other\n", string(must.Get(c.ReadFile(cs.Tree, "other", 100))(t)), "what the patch does not name is")
}

func TestUnfitPatchChangesNothing(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.Write("a", "a\n")
	r.Write("dir/b", "b\n")
	r.Commit("base")
	c := r.open()
	tree := changes(t, c, snapshot(t, c)).Tree
	added := func(name string) string {
		return "diff --git a/" + name + " b/" + name + "\nnew file mode 100644\n--- /dev/null\n+++ b/" + name + "\n@@ -0,0 +1 @@\n+x\n"
	}
	for name, patch := range map[string]string{
		"other lines":          "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-other\n+x\n",
		"a part does not fit":  added("fine") + "diff --git a/none b/none\n--- a/none\n+++ b/none\n@@ -1 +1 @@\n-other\n+x\n",
		"outside":              added("../x"),
		"git's own":            added(".git/config"),
		"git's own, elsewhere": added("dir/.GIT/config"),
		"there already":        added("a"),
		"below a file":         added("a/x"),
		"a folder":             added("dir"),
		"no patch":             "hello\n",
		"nothing":              "",
	} {
		must.Fail(t, "", must.Err(c.ApplyPatch(t.Context(), tree, []byte(patch))), name)
	}
}
