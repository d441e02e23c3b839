package audit

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/recordtest"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// ended is a run that ended so, published by the mode up to a step, with a change
// unless tree is empty, and one check that came out as after.
func ended(o outcome.Outcome, reason, mode, step, tree, after string) Record {
	row := transcript.VerifyRow{Name: "test", Run: "make test", Must: "pass", Before: "green", After: after, Passed: after == "green"}
	table := &transcript.Verify{Attempt: 1, Passed: row.Passed, Rows: []transcript.VerifyRow{row}}
	view := &transcript.View{
		Started:  transcript.RunStarted{Publish: mode},
		Finished: &transcript.RunFinished{Outcome: string(o), Reason: reason, ExitCode: (&outcome.Stop{Outcome: o, Reason: reason}).ExitCode()},
	}
	view.Verify, view.Work.Verify, view.Work.Done, view.Work.LastPublishStep = table, table, true, step
	if tree != "" {
		view.Work.Change = &transcript.Change{TreeSHA: tree, Files: []changeset.File{{Path: "a", NewID: "1"}}}
	}
	return Record{View: view, Job: &job.Job{Verify: []job.VerifyCheck{{Name: "test", Run: "make test", Must: "pass"}}}}
}

// what are the points that differ.
func what(found Differences) []string {
	var points []string
	for _, d := range found {
		points = append(points, d.Subject)
	}
	return points
}

func TestComparesReplayWithRunEnd(t *testing.T) {
	red := []transcript.VerifyRow{{Name: "test", Run: "make test", Must: "pass", Before: "green", After: "red"}}
	green := []transcript.VerifyRow{{Name: "test", Run: "make test", Must: "pass", Before: "green", After: "green", Passed: true}}
	for name, c := range map[string]struct {
		record Record
		stop   *outcome.Stop
		tree   string
		checks []transcript.VerifyRow
		want   []string
	}{
		"the same": {
			ended(outcome.Changed, "pull_request", "github", "pull_request", "t1", "green"), outcome.Stopf(outcome.Changed, "left_in_checkout", ""), "t1", green, nil,
		},
		"the same, which an earlier run had published": {
			ended(outcome.NoChanges, "already_published", "github", "", "t1", "green"), outcome.Stopf(outcome.Changed, "left_in_checkout", ""), "t1", green, nil,
		},
		"another tree": {
			ended(outcome.Changed, "pushed", "local", "push", "t1", "green"), outcome.Stopf(outcome.Changed, "left_in_checkout", ""), "t2", green, []string{"tree"},
		},
		"checks that are red now": {
			ended(outcome.Changed, "pushed", "local", "push", "t1", "green"), outcome.Stopf(outcome.VerifyFailed, "red", ""), "t1", red, []string{"outcome", "check test"},
		},
		"no check any more": {
			ended(outcome.Changed, "committed", "local", "commit", "t1", "green"), outcome.Stopf(outcome.Changed, "left_in_checkout", ""), "t1", nil, []string{"check test"},
		},
		"nothing changed, in both": {
			ended(outcome.NoChanges, "nothing_to_do", "none", "", "", "green"), outcome.Stopf(outcome.NoChanges, "nothing_to_do", ""), "base", green, nil,
		},
		"another reason for no change": {
			ended(outcome.NoChanges, "nothing_to_do", "none", "", "", "green"), outcome.Stopf(outcome.NoChanges, "answered", ""), "base", green, []string{"outcome"},
		},
		"a reason that its publishing does not bear out": {
			ended(outcome.Changed, "pull_request", "github", "push", "t1", "green"), outcome.Stopf(outcome.Changed, "left_in_checkout", ""), "t1", green, []string{"reason"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := c.record.CompareEnd(Replay{Stop: c.stop, Base: "base", Tree: c.tree, Checks: c.checks})
			must.Same(t, c.want, what(found))
		})
	}
	killed := ended(outcome.Changed, "", "none", "", "", "green")
	killed.Finished = nil
	must.None(t, killed.CompareEnd(Replay{Tree: "t9"}), "a run that was killed has no end to compare")
	going := ended(outcome.Changed, "pushed", "local", "push", "t1", "green").ReportMissingAnswers(Replay{Stop: outcome.Stopf(outcome.ModelFailed, "", "It goes on."), Checks: red})
	must.Same(t, []string{"end", "check test"}, what(going))
}

// A record whose end does not follow from the rest of it was altered.
func TestChecksRecordConsistency(t *testing.T) {
	for name, c := range map[string]struct {
		record Record
		alter  func(*Record)
		want   []string
	}{
		"as it was":                       {ended(outcome.Changed, "pull_request", "github", "pull_request", "t1", "green"), nil, nil},
		"red, and called a change":        {ended(outcome.Changed, "pull_request", "github", "pull_request", "t1", "red"), nil, []string{"outcome"}},
		"a change, and called none":       {ended(outcome.NoChanges, "nothing_to_do", "none", "", "t1", "green"), nil, []string{"outcome"}},
		"no change, and called one":       {ended(outcome.Changed, "left_in_checkout", "none", "", "", "green"), nil, []string{"outcome"}},
		"stopped after all was done":      {ended(outcome.ModelFailed, "quota", "local", "push", "t1", "green"), nil, []string{"outcome"}},
		"stopped before it was published": {ended(outcome.ModelFailed, "quota", "local", "commit", "t1", "green"), nil, nil},
		"refused by its policy":           {ended(outcome.PolicyViolation, "change", "none", "", "t1", "green"), nil, nil},
		"another exit code":               {ended(outcome.VerifyFailed, "red", "none", "", "t1", "red"), func(r *Record) { r.Finished.ExitCode = 0 }, []string{"exit code"}},
		"a check of another name":         {ended(outcome.VerifyFailed, "red", "none", "", "t1", "red"), func(r *Record) { r.Job.Verify[0].Name = "lint" }, []string{"check test"}},
		"a check that is not of the job":  {ended(outcome.VerifyFailed, "red", "none", "", "t1", "red"), func(r *Record) { r.Job.Verify = nil }, []string{"number of checks"}},
		"red that is said to pass":        {ended(outcome.Changed, "left_in_checkout", "none", "", "t1", "red"), func(r *Record) { r.Work.Verify.Passed, r.Work.Verify.Rows[0].Passed = true, true }, []string{"check test", "all checks pass"}},
		"on another base, where checks of that decided": {ended(outcome.Changed, "pull_request", "github", "pull_request", "t1", "red"), func(r *Record) {
			r.Change = &transcript.Change{BaseSHA: "0123"}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			rec := recordtest.New(t, "r")
			c.record.Directory = rec.Directory
			if c.alter != nil {
				c.alter(&c.record)
			}
			must.Same(t, c.want, what(c.record.CheckConsistency(t.Context())))
		})
	}
}

// Result and chain of a record agree with its events.
func TestChecksRecordAgainstFiles(t *testing.T) {
	for name, c := range map[string]struct {
		file, from, to string
		want           []string
	}{
		"as they were":     {record.ResultFile, "{", "{", nil},
		"another result":   {record.ResultFile, `"no_changes"`, `"changed"`, []string{record.ResultFile}},
		"another event":    {record.TranscriptFile, `"nothing_to_do"`, `"answered"`, []string{"transcript"}},
		"no result":        {record.ResultFile, "", "", nil},
		"a result of none": {record.ResultFile, "{", "[", []string{"transcript", record.ResultFile}},
	} {
		t.Run(name, func(t *testing.T) {
			rec := recordtest.New(t, "r")
			must.Do(t, rec.Append(transcript.RunFinished{Outcome: string(outcome.NoChanges), Reason: "nothing_to_do"}))
			view := must.Get(rec.FoldEvents(nil))(t)
			result := record.ResultFromView(view)
			result.TranscriptSHA256 = rec.Log().Head()
			must.Do(t, rec.WriteJSON(record.ResultFile, result))
			if c.from == "" {
				rec.Remove(c.file)
			} else if raw, err := rec.Read(c.file); err != nil || os.WriteFile(rec.Join(c.file), []byte(strings.Replace(string(raw), c.from, c.to, 1)), 0o600) != nil {
				t.Fatal(err)
			}
			must.Same(t, c.want, what(Record{Directory: rec.Directory, View: view, Job: &job.Job{}}.CheckConsistency(t.Context())))
		})
	}
}

func TestComparesOutputsWithoutVolatileText(t *testing.T) {
	rec := recordtest.New(t, "r")
	must.Do(t, rec.Append(transcript.Policy{SandboxPath: "/trees/567100680939/tree"}))
	for number, output := range map[int]string{1: "Wall time: 0.2 s\n/tmp/new/a.go\n/trees/567100680939/tree/b.go", 2: "other"} {
		must.Do(t, rec.Append(transcript.ToolFinished{Number: number, Output: output}))
	}
	ofScript := transcript.ToolFinished{Number: 2, Caller: 1, Tool: "read_file", Output: "of a script"}
	must.Do(t, rec.Append(ofScript))
	r := Record{Directory: rec.Directory, View: &transcript.View{Workspace: transcript.Workspace{Root: "/home/old"}, Policy: transcript.Policy{SandboxPath: "/trees/248100680939/tree"}}}
	found := must.Get(r.CompareOutputs([]transcript.ToolFinished{
		ofScript,
		{Number: 1, Tool: "exec_command", Output: "Wall time: 9.0 s\n/home/old/a.go\n/trees/248100680939/tree/b.go"},
		{Number: 2, Tool: "read_file", Output: "same"},
		{Number: 3, Tool: "list_dir", Output: "gone"},
	}, rec.Directory, "/tmp/new"))(t)
	want := Differences{{Subject: "call 2 (read_file)", Recorded: "same", Replayed: "other"}, {Subject: "call 3 (list_dir)", Recorded: "gone", Replayed: "(not called)"}}
	must.Same(t, want, found)
}

// A script that makes its calls in another order has the same outputs.
func TestComparesScriptCallsInAnyOrder(t *testing.T) {
	run := func(root string, calls ...string) (*record.Record, []transcript.ToolFinished) {
		rec := recordtest.New(t, "r")
		var ended []transcript.ToolFinished
		for i, name := range calls {
			ended = append(ended, transcript.ToolFinished{Number: i + 1, Caller: 1, Tool: "read_file", Output: "of " + name})
			began := transcript.ToolStarted{Number: i + 1, Caller: 1, Tool: "read_file", Input: root + "/" + name}
			must.Do(t, errors.Join(rec.Append(began), rec.Append(ended[i])))
		}
		return rec, ended
	}
	before, recorded := run("/home/old", "a", "b", "c", "gone")
	after, _ := run("/tmp/new", "c", "a", "b", "new")
	r := Record{Directory: before.Directory, View: &transcript.View{Workspace: transcript.Workspace{Root: "/home/old"}}}
	found := must.Get(r.CompareOutputs(recorded, after.Directory, "/tmp/new"))(t)
	want := Differences{{Subject: "call 1.4 (read_file)", Recorded: "of gone", Replayed: "of new"}}
	must.Same(t, want, found)
}

func TestChecksRequestsPatchAndFiles(t *testing.T) {
	rec := recordtest.New(t, "r")
	request := transcript.ModelRequest{Turn: 1, SHA256: "0123", Settings: json.RawMessage(`{"model":"m"}`), Input: []json.RawMessage{json.RawMessage(`{"role":"user"}`)}}
	must.Do(t, rec.Append(request))
	must.Do(t, rec.Write(record.PatchFile, []byte("a patch\n")))
	r := ended(outcome.Changed, "left_in_checkout", "none", "", "t1", "green")
	r.Directory = rec.Directory
	found, number, err := r.CompareRequests()
	if err != nil || number != 1 || len(found) != 1 || found[0].Subject != "request of turn 1" || found[0].Recorded != "0123" {
		t.Errorf("%d requests, %v, %v", number, found, err)
	}
	r.Work.Change.Patch, r.Work.Change.SHA256 = record.PatchFile, "4567"
	if found, err := r.ComparePatch(t.Context()); err != nil || len(found) != 1 || found[0].Recorded != "4567" {
		t.Errorf("%v, %v", found, err)
	}
	r.Work.Change.SHA256 = found[0].Replayed // of something else
	r.Work.Change.Patch = "not-there"
	if found, err := r.ComparePatch(t.Context()); err != nil || found != nil {
		t.Errorf("a patch that is not there: %v, %v", found, err)
	}
	must.None(t, r.CompareFiles([]changeset.File{{Path: "a", NewID: "1"}}, "t1"), "the same files")
	if found := r.CompareFiles(nil, "t2"); len(found) != 1 || found[0].Replayed != "t2" {
		t.Errorf("other files: %v", found)
	}
}
