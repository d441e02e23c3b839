package verify

import (
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// A check that the change made green by editing what it runs is red with that put back.
func TestRecordsScriptsTurningCheckGreen(t *testing.T) {
	const strict, lax = "grep -q change tracked", "true"
	base := map[string]string{"ci/check.sh": strict, "ci/lib.sh": "", "Makefile": "test:\n\t" + strict + "\n"}
	altered := func(files ...string) (all []transcript.OldTest) {
		for _, file := range files {
			all = append(all, transcript.OldTest{File: file, Script: true, Fails: true, Shared: len(files) > 1})
		}
		return all
	}
	for _, test := range []struct {
		name, run, setup string
		change           map[string]string
		want             []transcript.OldTest
	}{
		{"by its script", "sh ./ci/check.sh", "", map[string]string{"ci/check.sh": lax}, altered("ci/check.sh")},
		{"by its script in a folder", "cd ci && cd .. && bash -ec 'sh ci/check.sh'", "", map[string]string{"ci/check.sh": lax}, altered("ci/check.sh")},
		{"by two files", "sh ci/check.sh --with=ci/lib.sh", "", map[string]string{"ci/check.sh": lax, "ci/lib.sh": "lax"}, altered("ci/check.sh", "ci/lib.sh")},
		{"by a file that setup runs", "cat ci/check.sh | sh", "sh ci/check.sh || true", map[string]string{"ci/check.sh": lax}, altered("ci/check.sh")},
		{"by the work itself", "sh ci/check.sh", "", map[string]string{"tracked": "base\nchange\n"}, nil},
		{"by the work, and its script changed beside", "sh ci/check.sh", "", map[string]string{"tracked": "base\nchange\n", "ci/check.sh": strict + " # quietly"}, nil},
		{"by a file that it only reads", "grep -q change tracked", "", map[string]string{"tracked": "base\nchange\n"}, nil},
		{"by a program whose output it reads", "sh ci/lib.sh | grep hello", "", map[string]string{"ci/lib.sh": "echo hello"}, nil},
		{"by a file that was not there", "sh new.sh", "", map[string]string{"new.sh": lax}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			j := job.Job{Verify: []job.VerifyCheck{{Name: "t", Run: test.run, Must: "pass"}}}
			if test.setup != "" {
				j.Setup = []job.SetupStep{{Run: test.setup}}
			}
			table := judged(t, j, time.Time{}, base, test.change)
			must.Same(t, test.want, table.BrokenOldTests())
			must.Same(t, true, table.Passed)
			must.Same(t, "red", table.Rows[0].Before)
		})
	}
}

func TestFindsFilesNamedInCommands(t *testing.T) {
	for command, file := range map[string]string{
		"make test": "Makefile", "npm test": "package.json", "./ci/check.sh": "ci/check.sh", "cd ci && ./check.sh": "ci/check.sh", "mypy --config=mypy.ini .": "mypy.ini",
		"FOO=1 sh check.sh >log 2>&1": "check.sh", "if true; then ./a.sh; fi": "a.sh",
	} {
		found := false
		for _, name := range filesNamedIn([]string{command}) {
			found = found || mayMeanFile(name, ".", file)
		}
		must.Same(t, true, found, command, "does not name", file)
	}
}
