package tree_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/policy/must"
)

// texts are files with their texts; those in gone are to be none.
func texts(files folder, gone ...string) tree.Texts {
	now := tree.Texts{}
	for name, text := range files {
		now[name] = &text
	}
	for _, name := range gone {
		now[name] = nil
	}
	return now
}

func rewrite(t testing.TB, dir string, now tree.Texts) (*tree.Plan, error) {
	t.Helper()
	var paths []string
	for name := range now {
		paths = append(paths, name)
	}
	return tree.NewRewrite(t.Context(), tree.OnRoot(openRoot(t, dir)), paths, func(tree.Texts) (tree.Texts, error) { return now, nil })
}

func TestRewrites(t *testing.T) {
	long := strings.Repeat("line\n", 200)
	for name, test := range map[string]struct {
		before folder
		now    tree.Texts
		want   folder
		diff   string
	}{
		"update": {
			folder{"f g": "a\nb\nc\n"},
			texts(folder{"f g": "a\nB\nc\n"}),
			folder{"f g": "a\nB\nc\n"},
			"diff --git a/f g b/f g\n--- a/f g\t\n+++ b/f g\t\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n",
		},
		"create, with folders": {
			nil, texts(folder{"d/e/f": "a"}),
			folder{"d/e/f": "a"},
			"diff --git a/d/e/f b/d/e/f\nnew file mode 100644\n--- /dev/null\n+++ b/d/e/f\n@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n",
		},
		"delete": {
			folder{"f": "a\n", "g": "b\n", "h": "c\n"},
			texts(nil, "f", "h"),
			folder{"g": "b\n"},
			"diff --git a/f b/f\ndeleted file mode 100644\n--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n" +
				"diff --git a/h b/h\ndeleted file mode 100644\n--- a/h\n+++ /dev/null\n@@ -1 +0,0 @@\n-c\n",
		},
		"nothing": {folder{"f": "a\n"}, texts(folder{"f": "a\n"}, "none"), folder{"f": "a\n"}, ""},
		"CRLF, a mark, no final newline": {
			folder{"f": "\ufeffa\r\nb\r\nc"},
			texts(folder{"f": "\ufeffa\r\nB\r\nc"}),
			folder{"f": "\ufeffa\r\nB\r\nc"},
			"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n \ufeffa\r\n-b\r\n+B\r\n c\n\\ No newline at end of file\n",
		},
		"no UTF-8": {
			folder{"f": "\xff\n\x00\n"},
			texts(folder{"f": "\xfe\n\x00\n"}),
			folder{"f": "\xfe\n\x00\n"},
			"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-\xff\n+\xfe\n \x00\n",
		},
		"places far apart are hunks of their own": {
			folder{"f": "x\n" + long + "y\n"},
			texts(folder{"f": "X\n" + long + "Y\n"}),
			folder{"f": "X\n" + long + "Y\n"},
			"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,4 +1,4 @@\n-x\n+X\n line\n line\n line\n@@ -199,4 +199,4 @@\n line\n line\n line\n-y\n+Y\n",
		},
		"another spelling of the same": {
			folder{"d/f": "a\n"},
			texts(folder{"./d//f": "b\n", "d/f": "b\n"}),
			folder{"d/f": "b\n"},
			"diff --git a/d/f b/d/f\n--- a/d/f\n+++ b/d/f\n@@ -1 +1 @@\n-a\n+b\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			test.before.write(t, dir)
			plan := must.Get(rewrite(t, dir, test.now))(t)
			must.Same(t, test.diff, diffOf(t, plan))
			must.Do(t, plan.Commit(t.Context()))
			must.Same(t, test.want, readTree(t, dir).withoutEmpty())
		})
	}
}

func TestRefusesInvalidRewrites(t *testing.T) {
	own := errors.New("does not fit")
	for name, test := range map[string]struct {
		paths []string
		now   tree.Texts
		err   error
		want  string
	}{
		"an error of rewrite":        {[]string{"f"}, nil, own, "does not fit"},
		"what was not read":          {[]string{"f"}, texts(folder{"g": "x"}), nil, "g: it was not read"},
		"one file, two texts":        {[]string{"f", "./f"}, texts(folder{"f": "1", "./f": "2"}), nil, "f: ./f is the same file"},
		"one file, gone and not":     {[]string{"f", "./f"}, texts(folder{"f": "1"}, "./f"), nil, "f: ./f is the same file"},
		"a file that is a directory": {[]string{"n/f", "n"}, texts(folder{"n": "1", "n/f": "2"}), nil, "n"},
		"too large":                  {[]string{"f"}, texts(folder{"f": strings.Repeat("x", tree.MaxFileSize+1)}), nil, "f: the file would have"},
		"a path that leads out":      {[]string{"f", "../x"}, texts(folder{"f": "1"}), nil, "../x: the path leaves"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			folder{"f": "a\n"}.write(t, dir)
			_, err := tree.NewRewrite(t.Context(), tree.OnRoot(openRoot(t, dir)), test.paths, func(tree.Texts) (tree.Texts, error) { return test.now, test.err })
			if err == nil || !strings.HasPrefix(err.Error(), test.want) || test.err != nil && err != test.err {
				t.Errorf("error %v, want %s", err, test.want)
			}
			if _, is := errors.AsType[*tree.PathError](err); is == (test.err != nil) {
				t.Errorf("it is %T", err)
			}
		})
	}
}

// Whatever two texts of a file are, the diff between them makes the one of the other: read here, and
// by git.
func TestRewriteDiffReproducesText(t *testing.T) {
	line := rapid.SampledFrom([]string{"a\n", "b\n", "\n", "}\n", "c\r\n", "d\r", "é\n", " a\n", "-\n", "\\ No newline\n"})
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(line, 0, 90).Draw(t, "lines"), "") + rapid.SampledFrom([]string{"", "end", "\ufeff"}).Draw(t, "end")
	})
	parent := t.TempDir()
	rapid.Check(t, func(r *rapid.T) {
		was, now := text.Draw(r, "was"), text.Draw(r, "now")
		if rapid.Bool().Draw(r, "close") {
			at := rapid.IntRange(0, len(was)).Draw(r, "at")
			now = was[:at] + rapid.SampledFrom([]string{"", "x", "x\n", "a\nb\n"}).Draw(r, "new") + was[min(len(was), at+rapid.IntRange(0, 9).Draw(r, "gone")):]
		}
		dir := must.Get(os.MkdirTemp(parent, ""))(r)
		folder{"a \"b\"": was}.write(r, dir)
		plan := must.Get(rewrite(t, dir, texts(folder{"a \"b\"": now, "new": now})))(r)
		diff := diffOf(t, plan)
		files, err := tree.ParseDiff(diff)
		if err != nil {
			r.Fatalf("%v in\n%s", err, diff)
		}
		got, err := files.Apply(tree.Texts{"a \"b\"": &was})
		if err != nil {
			r.Fatalf("%v in\n%s", err, diff)
		}
		for name, text := range got {
			if *text != now {
				r.Errorf("%s is %q, want %q, by\n%s", name, *text, now, diff)
			}
		}
		if rapid.IntRange(0, 20).Draw(r, "git") == 0 {
			gitApply(t, dir, diff)
			must.Same(r, folder{"a \"b\"": now, "new": now}, readTree(r, dir))
		}
	})
}

func TestParseDiffRefusesUnsupportedDiffs(t *testing.T) {
	for name, text := range map[string]string{
		"no diff":          "hello\n",
		"a rename":         "diff --git a/f b/g\nsimilarity index 100%\nrename from f\nrename to g\n",
		"a mode":           "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n",
		"a new mode":       "diff --git a/f b/f\nnew file mode 100755\n",
		"a link":           "diff --git a/f b/f\ndeleted file mode 120000\n--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\\ No newline at end of file\n",
		"binary":           "diff --git a/f b/f\nGIT binary patch\nliteral 0\n",
		"a hunk cut short": "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n",
		"a wrong line":     "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\na\nb\n",
		"no extent":        "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -x +1 @@\n-a\n",
		"half a header":    "diff --git a/f b/f\n--- a/f\n",
	} {
		must.Fail(t, "", must.Err(tree.ParseDiff(text)), name, "is read")
	}
}

func TestDiffAppliesOnlyToFittingTexts(t *testing.T) {
	const (
		update = "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -2,2 +2,2 @@\n-b\n+B\n c\n"
		create = "diff --git a/f b/f\nnew file mode 100644\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n"
		remove = "diff --git a/f b/f\ndeleted file mode 100644\n--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
	)
	for name, test := range map[string]struct {
		diff string
		was  tree.Texts
		want tree.Texts // nil: it does not apply
	}{
		"where it says":              {update, texts(folder{"f": "b\nb\nc\n"}), texts(folder{"f": "b\nB\nc\n"})},
		"further down":               {update, texts(folder{"f": "1\n2\n3\nb\nc\n"}), texts(folder{"f": "1\n2\n3\nB\nc\n"})},
		"at two other places":        {update, texts(folder{"f": "b\nc\n2\nb\nc\n"}), nil},
		"nowhere":                    {update, texts(folder{"f": "a\n"}), nil},
		"to no file":                 {update, nil, nil},
		"over a file":                {create, texts(folder{"f": "x\n"}), nil},
		"a file that has more":       {remove, texts(folder{"f": "a\nb\n"}), nil},
		"a file that goes as it was": {remove, texts(folder{"f": "a\n"}), texts(nil, "f")},
	} {
		t.Run(name, func(t *testing.T) {
			files := must.Get(tree.ParseDiff(test.diff))(t)
			got, err := files.Apply(test.was)
			must.Same(t, test.want != nil, err == nil, err)
			must.Same(t, test.want, got)
		})
	}
}

func TestRefusesRewriteOfChangedFile(t *testing.T) {
	dir := t.TempDir()
	folder{"f": "a\n"}.write(t, dir)
	plan := must.Get(rewrite(t, dir, texts(folder{"f": "b\n"})))(t)
	folder{"f": "another\n"}.write(t, dir)
	if err := plan.Commit(t.Context()); !errors.As(err, new(*tree.ChangedError)) {
		t.Errorf("error %v", err)
	}
	wantTree(t, dir, folder{"f": "another\n"})
}
