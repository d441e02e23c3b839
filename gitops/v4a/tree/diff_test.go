package tree_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/v4a/tree"
	"github.com/agent-ci/agent-ci/policy/must"
)

func diffOf(t testing.TB, plan *tree.Plan) string {
	t.Helper()
	var b bytes.Buffer
	must.Do(t, plan.Diff(&b))
	return b.String()
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
			must.Do(t, plan.Commit(t.Context()))
			must.Same(t, readTree(t, theirs).withoutEmpty(), readTree(t, ours).withoutEmpty())
		})
	}
}

func TestDiffCoversModesAndLinks(t *testing.T) {
	ours, theirs := t.TempDir(), t.TempDir()
	for _, dir := range []string{ours, theirs} {
		folder{"run": "x\n", "to": "y\n"}.write(t, dir)
		must.Do(t, os.Chmod(filepath.Join(dir, "run"), 0o755))
		for _, link := range []string{"gone", "file"} {
			must.Do(t, os.Symlink("to", filepath.Join(dir, link)))
		}
	}
	plan := planned(t, ours, "*** Update File: run\n*** Move to: to\n@@\n x\n*** Delete File: gone\n*** Delete File: file\n*** Add File: file\n+f\n")
	gitApply(t, theirs, diffOf(t, plan))
	must.Do(t, plan.Commit(t.Context()))
	wantTree(t, ours, readTree(t, theirs))
	for _, dir := range []string{ours, theirs} {
		info := must.Get(os.Stat(filepath.Join(dir, "to")))(t)
		must.Same(t, 0o755, info.Mode(), "mode")
	}
}
