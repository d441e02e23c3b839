package tree_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/google/go-cmp/cmp"
)

func diffOf(t testing.TB, plan *tree.Plan) string {
	t.Helper()
	var b bytes.Buffer
	if err := plan.Diff(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestDiff(t *testing.T) {
	var numbers strings.Builder
	for i := range 30 {
		numbers.WriteString(strings.Repeat("n", i+1) + "\n")
	}
	n := func(i int) string { return strings.Repeat("n", i) }
	tests := map[string]struct {
		before         folder
		sections, want string
	}{
		"update": {
			folder{"f": numbers.String()},
			"*** Update File: f\n@@\n-" + n(10) + "\n+x\n+y\n@@\n-" + n(30) + "\n",
			"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -7,7 +7,8 @@\n " + n(7) + "\n " + n(8) + "\n " + n(9) + "\n-" + n(10) +
				"\n+x\n+y\n " + n(11) + "\n " + n(12) + "\n " + n(13) + "\n@@ -27,4 +28,3 @@\n " + n(27) + "\n " + n(28) + "\n " + n(29) + "\n-" + n(30) + "\n",
		},
		"add": {
			nil, "*** Add File: a b\n+x\n",
			"diff --git a/a b b/a b\nnew file mode 100644\n--- /dev/null\n+++ b/a b\t\n@@ -0,0 +1 @@\n+x\n",
		},
		"delete": {
			folder{"f": "x\ny"},
			"*** Delete File: f\n",
			"diff --git a/f b/f\ndeleted file mode 100644\n--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-x\n-y\n\\ No newline at end of file\n",
		},
		"move": {
			folder{"f": "x\ny\n"},
			"*** Update File: f\n*** Move to: g\n@@\n x\n",
			"diff --git a/f b/g\nsimilarity index 100%\nrename from f\nrename to g\n",
		},
		"a final newline": {
			folder{"f": "x\ny"},
			"*** Update File: f\n@@\n x\n-y\n+y\n",
			"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n x\n-y\n\\ No newline at end of file\n+y\n",
		},
		"nothing": {folder{"f": "x\n"}, "*** Update File: f\n@@\n-x\n+x\n", ""},
		"only what differs of a whole file": {
			folder{"f": "a\nb\nc\n"},
			"*** Add File: f\n+a\n+B\n+c\n",
			"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			tt.before.write(t, dir)
			if diff := cmp.Diff(tt.want, diffOf(t, planned(t, dir, tt.sections))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// gitApply applies a diff to dir with git itself.
func gitApply(t *testing.T, dir, diff string) {
	t.Helper()
	if diff == "" {
		return
	}
	cmd := exec.CommandContext(t.Context(), "git", "apply", "--whitespace=nowarn", "-")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull, "HOME="+dir, "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	cmd.Stdin = strings.NewReader(diff)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git apply: %v\n%s\n%s", err, out, diff)
	}
}

// withoutEmpty drops directories without files: git knows none.
func (files folder) withoutEmpty() folder {
	kept := folder{}
	for name, text := range files {
		if text != "/" {
			kept[name] = text
		}
	}
	return kept
}

// git makes the same of a diff as Commit does of the plan.
func TestDiffAppliesWithGit(t *testing.T) {
	cases := map[string]struct {
		before   folder
		sections string
	}{
		"odd names":     {folder{"a\tb\"c": "x\n", "é ü": "x\n"}, "*** Update File: a\tb\"c\n@@\n-x\n+y\n*** Update File: é ü\n*** Move to: e \\u\n@@\n-x\n+y\n"},
		"empty files":   {folder{"e": ""}, "*** Delete File: e\n*** Add File: n\n"},
		"CRLF":          {folder{"f": "a\r\nb\r\nc"}, "*** Update File: f\n@@\n-b\n+B\n"},
		"CR":            {folder{"f": "a\rb\rc"}, "*** Update File: f\n@@\n-b\n+B\n"},
		"two sections":  {folder{"f": "a\nb\nc\nd\ne\n"}, "*** Update File: f\n@@\n-b\n+x\n+y\n*** Update File: f\n@@\n-y\n-c\n@@\n-e\n+E\n*** Update File: f\n@@\n-a\n+A\n"},
		"mark removed":  {folder{"f": "\ufeffa\nb\n"}, "*** Update File: f\n@@\n-\ufeffa\n+a\n"},
		"moved, edited": {folder{"f": "a\nb\n", "g": "z\n"}, "*** Update File: f\n*** Move to: d/f\n@@\n-a\n*** Update File: d/f\n*** Move to: g\n@@\n b\n+c\n"},
	}
	for name, tt := range patches {
		cases[name] = struct {
			before   folder
			sections string
		}{tt.before, tt.sections}
	}
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			ours, theirs := t.TempDir(), t.TempDir()
			tt.before.write(t, ours)
			tt.before.write(t, theirs)
			plan := planned(t, ours, tt.sections)
			gitApply(t, theirs, diffOf(t, plan))
			if err := plan.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(readTree(t, theirs).withoutEmpty(), readTree(t, ours).withoutEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDiffOfModesAndLinks(t *testing.T) {
	ours, theirs := t.TempDir(), t.TempDir()
	for _, dir := range []string{ours, theirs} {
		folder{"run": "x\n", "to": "y\n"}.write(t, dir)
		if err := os.Chmod(filepath.Join(dir, "run"), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, link := range []string{"gone", "file"} {
			if err := os.Symlink("to", filepath.Join(dir, link)); err != nil {
				t.Fatal(err)
			}
		}
	}
	plan := planned(t, ours, "*** Update File: run\n*** Move to: to\n@@\n x\n*** Delete File: gone\n*** Delete File: file\n*** Add File: file\n+f\n")
	gitApply(t, theirs, diffOf(t, plan))
	if err := plan.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(readTree(t, theirs), readTree(t, ours)); diff != "" {
		t.Error(diff)
	}
	for _, dir := range []string{ours, theirs} {
		info, err := os.Stat(filepath.Join(dir, "to"))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != 0o755 {
			t.Errorf("mode %v", info.Mode())
		}
	}
}
