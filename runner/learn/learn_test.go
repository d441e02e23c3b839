package learn

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/runner/transcript"
)

// recorded writes the record of a run with some events.
func recorded(t *testing.T, id string, events ...any) string {
	t.Helper()
	dir := t.TempDir()
	log, err := transcript.Create(filepath.Join(dir, "transcript.jsonl"), transcript.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for _, data := range append([]any{transcript.RunStarted{RunID: id, Job: json.RawMessage(`{}`)}}, events...) {
		kind := transcript.TypeRunStarted
		switch data.(type) {
		case transcript.Verify:
			kind = transcript.TypeVerify
		case transcript.Network:
			kind = transcript.TypeNetwork
		case transcript.Setup:
			kind = transcript.TypeSetup
		case transcript.ToolFinished:
			kind = transcript.TypeToolFinished
		}
		if _, err := log.Append(kind, data); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFrom(t *testing.T) {
	one := recorded(t, "r1",
		transcript.Setup{Name: "tools", ExitCode: 1},
		transcript.Verify{Rows: []transcript.VerifyRow{
			{Name: "unit", Before: "flaky", Runs: []transcript.CheckRun{{State: "red", ExitCode: 1, Seconds: 4}, {State: "green", Seconds: 6}}},
			{Name: "kept", Before: "flaky", From: "r0", Runs: []transcript.CheckRun{{Seconds: 90}}},
		}},
		transcript.Network{Target: "evil.example:443", Allowed: false}, transcript.Network{Target: "good.example:443", Allowed: true},
		transcript.ToolFinished{Tool: "exec_command", Failed: true, Output: "Exit code: 127\nbash: line 1: jq: command not found"},
		transcript.ToolFinished{Tool: "read_file", Failed: true, Output: "bash: line 1: yq: command not found"},
		transcript.ToolFinished{Tool: "shell", Output: "bash: line 1: zq: command not found"},
	)
	two := recorded(t, "r2",
		transcript.Verify{Attempt: 1, Rows: []transcript.VerifyRow{{Name: "unit", Before: "flaky", After: "green", Runs: []transcript.CheckRun{{State: "green", Seconds: 11}}}}},
		transcript.Network{Target: "evil.example:443", Allowed: false}, transcript.Network{Target: "a\u202eb\nc" + strings.Repeat("d", 500), Allowed: false},
	)
	got, err := From([]string{two, one, two})
	if err != nil {
		t.Fatal(err)
	}
	long := "ab c" + strings.Repeat("d", subjectWidth-len("a\u202eb\nc")) + "…"
	want := []Finding{
		{Kind: FlakyCheck, Subject: "unit", In: []string{"r1"}, Of: 2},
		{Kind: CheckTime, Subject: "unit", In: []string{"r1", "r2"}, Of: 2, Median: 6, Longest: 11},
		{Kind: RefusedHost, Subject: long, In: []string{"r2"}, Of: 2},
		{Kind: RefusedHost, Subject: "evil.example:443", In: []string{"r1", "r2"}, Of: 2},
		{Kind: MissingProgram, Subject: "jq", In: []string{"r1"}, Of: 2},
		{Kind: FailedSetup, Subject: "tools", In: []string{"r1"}, Of: 2},
	}
	if diff := cmp.Diff(want, got.Findings); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if !slices.Equal(got.Runs, []string{"r1", "r2"}) {
		t.Errorf("runs are %v", got.Runs)
	}
	if got := want[1].Sentence(); got != `The check "unit" takes 6 s in the median of 2 runs, and 11 s at most.` {
		t.Error(got)
	}
	if got := got.evidence(want[3]); !slices.Equal(got, []string{"run:r1", "run:r2"}) {
		t.Error(got)
	}
}

// A check that is not shown as it is called could not be found by that name.
func TestWhatShowsAnotherName(t *testing.T) {
	run := transcript.Verify{Rows: []transcript.VerifyRow{{Name: "two  blanks", Runs: []transcript.CheckRun{{Seconds: 1}}}, {Name: "unit", Runs: []transcript.CheckRun{{Seconds: 1}}}}}
	found, err := From([]string{recorded(t, "r1", run)})
	if err != nil {
		t.Fatal(err)
	}
	var evidence []string
	for _, l := range found.Lessons() {
		evidence = append(evidence, l.Evidence...)
	}
	if diff := cmp.Diff([]string{"run:r1", "check:unit"}, evidence); diff != "" {
		t.Errorf("evidence (-want +got):\n%s", diff)
	}
}

func TestIDsGoBySubject(t *testing.T) {
	fewer := &Learnt{Findings: []Finding{{Kind: MissingProgram, Subject: "jq", In: []string{"r1"}, Of: 1}}}
	more := &Learnt{Findings: []Finding{{Kind: MissingProgram, Subject: "jq", In: []string{"r1", "r2"}, Of: 9}}}
	if a, b := fewer.Lessons()[0], more.Lessons()[0]; a.ID != b.ID || a.Claim == b.Claim {
		t.Errorf("%v and %v", a, b)
	}
}

func TestNoRun(t *testing.T) {
	if _, err := From([]string{t.TempDir()}); err == nil {
		t.Error("a folder without a transcript is a run")
	}
	if _, err := From([]string{recorded(t, "")}); err == nil || !strings.Contains(err.Error(), "had not begun") {
		t.Errorf("a run that had not begun: %v", err)
	}
}
