package assembly

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// Turns of a scripted session that make FILE by apply_patch, and the one that ends it.
const (
	patchWith = `
  - output:
      - call: apply_patch
        input: |
          *** Begin Patch
          *** Add File: FILE
          +made
          *** End Patch
`
	end = "  - output: [{say: Done.}]\n"
)

func TestProtectsPathsThatAreNeverPublished(t *testing.T) {
	for _, test := range []struct{ protected, path, name, want string }{
		{"fail", "sub", "a.lock", "sub/a.lock is protected by the job"},
		{"drop", "sub", "a.lock", "sub/a.lock is protected by the job"},
		{"fail", "sub", "a.txt", ""},
		{"fail", "", "a.lock", ""},
		{"warn", "sub", "a.lock", ""},
	} {
		a := &Agent{Options: Options{Job: &job.Job{
			Policy: job.Policy{Protect: []string{"sub/*.lock"}, Change: job.Change{Protected: test.protected}}, Repository: job.Repository{Path: test.path},
		}}}
		if got := a.protectedRefusal(test.name); !strings.HasPrefix(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%+v: %q", test, got)
		}
	}
}

func TestLinksPatchProgramUnlessDenied(t *testing.T) {
	for _, deny := range [][]string{nil, {"patch"}} {
		o := site(t, &job.Job{Tools: job.Tools{Deny: deny}}, nil)
		ran(t, briefed(t, o, end))
		must.Same(t, deny == nil, o.Record.Has(confine.ProgramsFolder+"/apply_patch"), "denied", deny, "commands find apply_patch")
	}
}

func TestRepeatsPatchesInFreshCheckout(t *testing.T) {
	o := site(t, &job.Job{}, nil)
	for name, text := range map[string]string{
		"changes/001.patch":      "*** Begin Patch\n*** Add File: a.txt\n+one\n*** End Patch\n",
		"changes/002.patch":      "*** Begin Patch\n*** Update File: made-by-a-command.txt\n-one\n+two\n*** End Patch\n",
		"changes/003.patch":      "*** Begin Patch\n*** Update File: a.txt\n-one\n+three\n*** End Patch\n",
		"changes/004.diff":       "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-three\n+four\n",
		"changes/005.diff":       "diff --git a/made-by-a-command.txt b/made-by-a-command.txt\n--- a/made-by-a-command.txt\n+++ b/made-by-a-command.txt\n@@ -1 +1 @@\n-one\n+two\n",
		"changes/006.patch":      "*** Begin Patch\n*** Update File: a.txt\n-four\n+five\n*** End Patch\n",
		"changes/007.merge.diff": "diff --git a/a.txt b/a.txt\nold mode 100644\nnew mode 100755\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-five\n+six\n",
		"changes/008.merge.diff": "diff --git a/made-by-a-command.txt b/made-by-a-command.txt\n--- a/made-by-a-command.txt\n+++ b/made-by-a-command.txt\n@@ -1 +1 @@\n-one\n+two\n",
	} {
		must.Do(t, o.Record.Write(name, []byte(text)))
	}
	a := briefed(t, o, strings.ReplaceAll(patchWith, "FILE", "b.txt")+end)
	must.Do(t, a.Resume(StoppedAgent{State: new(ResumeState)}))
	must.Do(t, a.ApplyPatches(t.Context()))
	if raw, err := os.ReadFile(filepath.Join(o.Workspace.SandboxPath(), "a.txt")); string(raw) != "six\n" {
		t.Errorf("a.txt is %q, %v", raw, err)
	}
	if info, err := os.Stat(filepath.Join(o.Workspace.SandboxPath(), "a.txt")); err != nil || info.Mode().Perm()&0o100 == 0 {
		t.Errorf("a.txt is no program: %v, %v", info, err)
	}
	var warned []string
	for _, w := range o.Record.Warnings() {
		if w.Code == "patch_not_repeated" {
			name, _, _ := strings.Cut(w.Message, " could not")
			warned = append(warned, name)
		}
	}
	must.Same(t, []string{"changes/002.patch", "changes/005.diff", "changes/008.merge.diff"}, warned, "warned")
	ran(t, a)
	must.Same(t, true, o.Record.Has(record.PatchesFolder+"/009.patch"), "the next patch took another's name")
}
