package verify

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// proving is a job whose check runs a script, tests.sh, on the files that end in
// _test.sh.
func proving(run string) job.Job {
	return job.Job{
		VerifyTests: []string{"*_test.sh"},
		Verify:      []job.VerifyCheck{{Name: "t", Run: run, Must: "pass", Proves: "true"}},
	}
}

func classes(table transcript.Verify) (all []string) {
	for _, p := range table.BestProofs() {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %t %s", p.File, p.Class, p.Shared, p.Note)))
	}
	return all
}

func TestProofWithoutTimeIsUnknown(t *testing.T) {
	run := `for f in *_test.sh; do test ! -e $f || sh $f; done`
	change := map[string]string{"tracked": "base\nchange\n", "a_test.sh": "grep change tracked"}
	table := judged(t, proving(run), time.Now().Add(-time.Hour), nil, change)
	must.Same(t, []string{"a_test.sh unknown false the time for it was over"}, classes(table))
	must.Same(t, true, table.Passed)
	must.Same(t, "", DescribeUnproven(table), "the agent is told of what it can't mend")
	table = judged(t, proving(run), time.Now().Add(time.Hour), nil, change)
	must.Same(t, []string{"a_test.sh proven false"}, classes(table))
}

func TestIgnoresLinkedTestFiles(t *testing.T) {
	run := `for f in *_test.sh; do test ! -e $f || sh $f; done`
	table := judged(t, proving(run), time.Time{}, nil, map[string]string{"tracked": "base\nchange\n", "a_test.sh": "-> tracked.sh", "tracked.sh": "true", "b_test.sh": "-> /etc/passwd-that-is-not"})
	must.Same(t, []string{"a_test.sh no_tests false it is no file", "b_test.sh no_tests false it is no file"}, classes(table))
}

func TestBoundsJudgedTestFiles(t *testing.T) {
	files := map[string]string{"tracked": "base\nchange\n"}
	for i := range maxTestFiles + 50 {
		files[fmt.Sprintf("f%04d_test.sh", i)] = fmt.Sprintf("grep -q change tracked # %d", i)
	}
	table := judged(t, proving(`test ! -e f0000_test.sh || sh f0000_test.sh`), time.Time{}, nil, files)
	all := table.BestProofs()
	if len(all) != maxTestFiles || table.UnlistedProofs() != 50 {
		t.Fatalf("%d files have a class, %d have none", len(all), table.UnlistedProofs())
	}
	for _, p := range all {
		if p.Class != transcript.Proven || !p.Shared {
			t.Fatalf("%+v", p)
		}
	}
}

func TestLocatesFailuresOfOtherTools(t *testing.T) {
	run := `n=0; for f in *_test.sh; do test ! -e $f || sh $f || { n=$((n+1)); echo "not ok $n $(printf %0400d 1)-$n"; echo "# (in test file $f, line 7)"; }; done; echo 1..9; test $n = 0`
	j := proving(run)
	table := judged(t, j, time.Time{}, nil, map[string]string{"tracked": "base\nchange\n", "a_test.sh": "grep change tracked", "b_test.sh": "grep base tracked"})
	must.Same(t, []string{"a_test.sh proven false", "b_test.sh unknown false the output names tests of other files, and none of it"}, classes(table))
	if names := table.BestProofs()[0].Tests; len(names) != 1 || len(names[0]) > maxName+len("…") {
		t.Errorf("%q", names)
	}
	must.Same(t, "", DescribeUnproven(table), "the agent is told of what it can't mend")
	table.Rows[0].Proof[1].Class, table.Rows[0].Proof[1].Note = transcript.NotRed, ""
	if words := DescribeUnproven(table); !strings.Contains(words, `- "b_test.sh": not_red; no test of it fails there`) || strings.Contains(words, "a_test.sh") {
		t.Error(words)
	}
}

func TestJudgesBaseTestsOfUnknownLanguage(t *testing.T) {
	j := proving("test ! -e code || ! grep -q '^base$' tracked 2>/dev/null")
	j.VerifyTests = []string{"tracked"}
	for name, c := range map[string]struct {
		tracked string
		classes []string
		want    transcript.OldTest
	}{
		"altered": {"other\n", []string{"tracked not_red false"}, transcript.OldTest{File: "tracked", Fails: true}},
		"removed": {"-", nil, transcript.OldTest{File: "tracked", Deleted: true, Fails: true}},
	} {
		t.Run(name, func(t *testing.T) {
			table := judged(t, j, time.Time{}, nil, map[string]string{"code": "", "tracked": c.tracked})
			must.Same(t, c.classes, classes(table))
			must.Same(t, []transcript.OldTest{c.want}, table.BrokenOldTests())
		})
	}
}

func TestReportsFlakyCheckOnChange(t *testing.T) {
	seen := filepath.Join(t.TempDir(), "seen")
	j := proving("test ! -e a_test.sh || test -e " + seen + " || { touch " + seen + "; false; }")
	j.Verify[0].Rerun, j.Verify[0].Flaky = 1, "accept"
	table := judged(t, j, time.Time{}, nil, map[string]string{"tracked": "base\nchange\n", "a_test.sh": "true"})
	must.Same(t, []string{"a_test.sh flaky false the check is flaky on the change"}, classes(table))
	must.Same(t, true, table.Passed)
}
