package audit

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/credential"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/recordtest"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

func TestMasksOnlyVolatileText(t *testing.T) {
	secret := strings.Repeat("x", 24)
	for name, pair := range map[string][2]string{
		"go test":           {"ok  \texample.org/a\t0.004s", "ok  \texample.org/a\t12.310s"},
		"go test, cached":   {"ok  \texample.org/a\t0.004s", "ok  \texample.org/a\t(cached)"},
		"a test's duration": {"--- FAIL: TestX (0.00s)", "--- FAIL: TestX (0.01s)"},
		"pytest":            {"============ 3 passed in 9.98s ============", "=========== 3 passed in 10.02s ==========="},
		"jest":              {"Time:        0.512 s, estimated 1 s", "Time:        1.2 s, estimated 2 s"},
		"cargo":             {"    Finished `dev` profile in 1m 02s", "    Finished `dev` profile in 58.1s"},
		"node":              {"# duration_ms 12.25ms", "# duration_ms 9ms"},
		"time(1)":           {"real\t0m0.012s", "real\t0m1.300s"},
		"milliseconds":      {"done in 12 ms", "done in 3 µs"},
		"RFC 3339":          {"at 2026-11-22T18:28:35Z", "at 2026-11-23T08:00:01.250+01:00"},
		"date":              {"Sun Nov 22 18:28:35 UTC 2026", "Mon Nov 23 08:01:02 UTC 2026"},
		"HTTP date":         {"Date: Sun, 22 Nov 2026 18:28:35 GMT", "Date: Mon, 23 Nov 2026 08:01:02 GMT"},
		"ls -l":             {"-rw-r--r-- 1 me me 4 Nov 22 18:28 a", "-rw-r--r-- 1 me me 4 Nov  3 08:01 a"},
		"a log":             {"18:28:35.123 INFO up", "08:00:00.001 INFO up"},
		"since 1970":        {"seed 1795372115123", "seed 1795372999001"},
		"a placeholder":     {"TOKEN=" + credential.NewPlaceholder(secret), "TOKEN=" + credential.NewPlaceholder(secret)},
		"a UUID":            {"id 3f2504e0-4f89-41d3-9a0c-0305e82c3301", "id 9b2d04e0-1111-41d3-9a0c-0305e82c33ff"},
		"a commit":          {"HEAD is now at 6ff86bc docs", "HEAD is now at 7601ee5 docs"},
		"an address":        {"*T(0xc000012345)", "*T(0xc0000a8000)"},
		"a port":            {"listening on http://127.0.0.1:43121/", "listening on http://127.0.0.1:5002/"},
		"a port of IPv6":    {"[::1]:43121 answers", "[::1]:5002 answers"},
		"a process":         {"started with pid 4711", "started with pid 12"},
		"a folder":          {"in /tmp/tmp.aXf3k9/work", "in /tmp/tmp.Bk29xx/work"},
		"mktemp":            {"made /home/me/tmp.aXf3k9Qs1z", "made /home/me/tmp.Bk29xx01Ab"},
		"Python's":          {"made /work/t/tmpab12_xyz/f", "made /work/t/tmpq9_12xyw/f"},
		"a folder of macOS": {"in /var/folders/ab/c1/T/x1/work", "in /var/folders/ab/c1/T/zz/work"},
	} {
		must.Same(t, maskVolatile(pair[0]), maskVolatile(pair[1]), name)
	}
	for name, pair := range map[string][2]string{
		"a count":           {"3 passed in 0.12s", "2 passed in 0.12s"},
		"a status":          {"exit status 1", "exit status 2"},
		"a line of a file":  {"a.go:12:3: undefined", "a.go:13:3: undefined"},
		"a version":         {"go1.26.1", "go1.26.2"},
		"a word":            {"deadbeef", "feedface"},
		"a number":          {"12345678 rows", "12345679 rows"},
		"a name in a path":  {"/tmp/x/a.go", "/tmp/x/b.go"},
		"blanks":            {"a  b", "a b"},
		"go test, red":      {"FAIL\texample.org/a\t0.004s", "ok  \texample.org/a\t0.004s"},
		"a host":            {"http://127.0.0.1:80/", "http://localhost:80/"},
		"a duration's lack": {"took 3 s", "took"},
	} {
		if a, b := maskVolatile(pair[0]), maskVolatile(pair[1]); a == b {
			t.Errorf("%s: both are %q", name, a)
		}
	}
}

func TestShowsDifferenceAsDiff(t *testing.T) {
	d := Difference{ignoreVolatile: true, Recorded: "one in 1s\ntwo\nthree\nfour\nfive\nsix\nlast", Replayed: "one in 2s\ntwo\nthree\nfour\n5\nsix\nlast\n"}
	want := "--- recorded\n+++ replayed\n@@ -2 +2 @@\n two\n three\n four\n-five\n+5\n six\n last\n"
	must.Same(t, want, d.Diff())
	d = Difference{Recorded: "", Replayed: strings.Repeat("x\n", shownLines+5)}
	if got := d.Diff(); strings.Count(got, "+x\n") != shownLines || !strings.HasSuffix(got, "… 5 more lines\n") {
		t.Errorf("a long one: %q", got)
	}
	d = Difference{Recorded: strings.Repeat("é", shownLineBytes), Replayed: "a"}
	if got := d.Diff(); len(got) > shownLineBytes+100 {
		t.Errorf("a long line has %d bytes", len(got))
	}
}

// Calls that run side by side end in any order.
func TestSortsDifferencesByCall(t *testing.T) {
	rec := recordtest.New(t, "r")
	var recorded []transcript.ToolFinished
	for _, number := range []int{2, 4, 5, 1, 16} {
		recorded = append(recorded, transcript.ToolFinished{Number: number, Tool: "exec_command"})
	}
	for _, number := range []int{2, 1} {
		recorded = append(recorded, transcript.ToolFinished{Number: number, Caller: 4, Tool: "exec_command"})
	}
	r := Record{Directory: rec.Directory, View: &transcript.View{Workspace: transcript.Workspace{Root: "/home/old"}}}
	found := must.Get(r.CompareOutputs(recorded, rec.Directory, "/tmp/new"))(t)
	want := []string{"call 1 (exec_command)", "call 2 (exec_command)", "call 4 (exec_command)", "call 4.1 (exec_command)", "call 4.2 (exec_command)", "call 5 (exec_command)", "call 16 (exec_command)"}
	must.Same(t, want, what(found))
	must.Same(t, 2, recorded[0].Number)
}

// What was cut is compared as a whole: a longer duration moves the place of the cut.
func TestComparesTruncatedOutputsWhole(t *testing.T) {
	const output = "Process exited with code 0\nOutput:\nWarning: truncated output (original token count: "
	directory := func(content string) *record.Directory {
		rec := recordtest.New(t, "r")
		must.Do(t, rec.Write("whole.txt", []byte(content)))
		is := transcript.ToolFinished{Number: 1, Tool: "exec_command", Output: output + content[:9], Truncated: true, File: "whole.txt"}
		must.Do(t, rec.Append(is))
		return rec.Directory
	}
	was := transcript.ToolFinished{Number: 1, Tool: "exec_command", Output: output + "took 10.2", Truncated: true, File: "whole.txt"}
	for replayed, want := range map[string]int{"took 9.7s\nall of it\n": 0, "took 9.7s\nall but it\n": 1} {
		r := Record{Directory: directory("took 10.2s\nall of it\n"), View: &transcript.View{Workspace: transcript.Workspace{Root: "/home/old"}}}
		found, err := r.CompareOutputs([]transcript.ToolFinished{was}, directory(replayed), "/tmp/new")
		if err != nil || len(found) != want {
			t.Errorf("%q: %v, %v", replayed, found, err)
		}
	}
	r := Record{Directory: directory("took 10.2s\n"), View: &transcript.View{Workspace: transcript.Workspace{Root: "/home/old"}}}
	was.Failed = true
	if found, err := r.CompareOutputs([]transcript.ToolFinished{was}, directory("took 10.2s\n"), "/tmp/new"); err != nil || len(found) != 1 || found[0].Recorded != "the call failed" {
		t.Errorf("a call that fails no more: %v, %v", found, err)
	}
}
