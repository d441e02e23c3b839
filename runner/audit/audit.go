package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/model"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/verify"
)

// Difference is one point in which a replay is not as the run was, or a record not
// as the rest of it says.
type Difference struct {
	What     string // "call 3 (exec_command)"
	Recorded string
	Replayed string
}

type Differences []Difference

func (d *Differences) note(what, recorded, replayed string) {
	if recorded != replayed {
		*d = append(*d, Difference{What: what, Recorded: recorded, Replayed: replayed})
	}
}

// Record is a run as its directory tells of it.
type Record struct {
	*record.Directory
	*transcript.View
	Job *job.Job // with the limits that it had last
}

type Replay struct {
	Stop   *outcome.Stop
	Base   string // tree of the base commit
	Tree   string // of the change; the base's when nothing changed
	Checks []transcript.VerifyRow
}

// Requests builds each request from the events, compares its digest, and gives how
// many there are.
func (r Record) Requests() (found Differences, number int, err error) {
	rebuilt := model.Rebuilt{Chat: r.Job.Model.Wire == "chat" && r.Started.Scripted == ""}
	_, err = r.Survey(func(_ *transcript.View, e transcript.Event) error {
		var d struct {
			Turn                 int
			SHA256               string
			Settings             json.RawMessage
			Input, Output, Items []json.RawMessage
			ID, Status           string
		}
		switch e.Type {
		case transcript.TypeModelRequest, transcript.TypeModelResponse, transcript.TypeCompaction:
		default:
			return nil
		}
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return err
		}
		switch e.Type {
		case transcript.TypeModelRequest:
			digest, err := rebuilt.Request(d.Settings, d.Input)
			if err != nil {
				return err
			}
			number++
			if digest != d.SHA256 && !rebuilt.LacksImages() {
				found.note(fmt.Sprintf("request of turn %d", d.Turn), d.SHA256, digest)
			}
		case transcript.TypeModelResponse:
			if d.Status == transcript.Incomplete {
				rebuilt.Rest(d.Output)
				return nil
			}
			rebuilt.Response(d.ID, d.Output)
		case transcript.TypeCompaction:
			rebuilt.Compaction(d.Items)
		}
		return nil
	})
	return found, number, err
}

// Outputs finds the calls whose outputs in the directory of a replay are not what they
// were, but for times, names of chunks, the folder that the work is in, and how long
// that makes them. at is that folder in the replay.
func (r Record) Outputs(recorded []transcript.ToolFinished, replay *record.Directory, at string) (found Differences, err error) {
	now := map[int]transcript.ToolFinished{}
	_, err = replay.Survey(func(_ *transcript.View, e transcript.Event) error {
		if e.Type != transcript.TypeToolFinished {
			return nil
		}
		var d transcript.ToolFinished
		err := json.Unmarshal(e.Data, &d)
		now[d.Number] = d
		return err
	})
	for _, was := range recorded {
		output := "(not called)"
		if is, ran := now[was.Number]; ran {
			output = lasting(strings.ReplaceAll(is.Output, at, r.Workspace.Root))
		}
		found.note(fmt.Sprintf("call %d (%s)", was.Number, was.Tool), lasting(was.Output), output)
	}
	return found, err
}

var passing = regexp.MustCompile(`(?m)^(?:Chunk ID: .*|Wall time: .*|Original token count: .*|Process running with session ID .*)\n?`)

// lasting is an output without what differs from run to run.
func lasting(output string) string { return passing.ReplaceAllString(output, "") }

// Itself looks for what a record says and what does not follow from the rest of it:
// its chain, its result, its checks and its end.
func (r Record) Itself() (found Differences) {
	if _, err := r.CheckChain(); err != nil && !errors.Is(err, record.ErrUnfinished) {
		found.note("transcript", "as it was written", err.Error())
	}
	r.rows(&found)
	end := r.Finished
	if end == nil {
		return found
	}
	if end.Result != nil && r.Has(record.ResultFile) {
		if err := r.CheckResult(end); err != nil {
			found.note(record.ResultFile, "as it was written", err.Error())
		}
	}
	follows := (&outcome.Stop{Outcome: outcome.Outcome(end.Outcome), Reason: end.Reason}).ExitCode()
	found.note("exit code", fmt.Sprint(end.ExitCode), fmt.Sprint(follows))
	found.note("outcome", end.Outcome, string(r.follows()))
	r.reason(&found)
	return found
}

// rows compares the last table of a record with the checks of its job, and what
// passed with how each came out.
func (r Record) rows(found *Differences) {
	table := r.Work.Verify
	if table == nil {
		return
	}
	passed := true
	for i, row := range table.Rows {
		is := row
		if i < len(r.Job.Verify) {
			check := r.Job.Verify[i]
			is.Name, is.Run, is.Must, is.Flaky = check.Name, check.Run, check.Must, ""
			if check.Flaky == "accept" {
				is.Flaky = check.Flaky
			}
			if row.NotRun == transcript.NotConcerned && r.concerns(check) {
				is.NotRun = ""
			}
		}
		is.Passed = table.Attempt > 0 && verify.Passes(is)
		passed = passed && (is.Passed || table.Attempt == 0)
		found.note("check "+row.Name, checkInWords(row), checkInWords(is))
	}
	found.note("number of checks", fmt.Sprint(len(table.Rows)), fmt.Sprint(len(r.Job.Verify)))
	found.note("all checks pass", fmt.Sprint(table.Passed), fmt.Sprint(passed))
}

// concerns says whether a check is for the change of the record. A pattern that can't be
// read is for any.
func (r Record) concerns(check job.VerifyCheck) bool {
	if r.Work.Change == nil {
		return false
	}
	var paths []string
	for _, f := range r.Work.Change.Files {
		paths = append(paths, f.Path)
	}
	is, err := verify.Concerns(check, paths)
	return is || err != nil
}

// reason compares the reason of a run that worked with how far it was published.
func (r Record) reason(found *Differences) {
	if !r.Moved() && r.Finished.Outcome == string(r.outcomeOfWork()) {
		found.note("reason", r.Finished.Reason, r.reasonOfWork())
	}
}

// Patch compares the patch of the change with its digest. Who published a bundle wrote
// it anew.
func (r Record) Patch(ctx context.Context) (found Differences, err error) {
	change := r.Work.Change
	if change == nil || r.Moved() || r.Has(record.PublishFile) || !r.Has(change.Patch) {
		return nil, nil
	}
	is, err := r.Digest(ctx, change.Patch)
	if err == nil {
		found.note(change.Patch, change.SHA256, is.SHA256)
	}
	return found, err
}

// Files compares the files of the change with those that the record tells of. tree is
// that of the objects.
func (r Record) Files(files []transcript.ChangeFile, tree string) Differences {
	if transcript.SameFiles(files, r.Work.Change.Files) {
		return nil
	}
	return Differences{{What: "change", Recorded: r.Work.Change.TreeSHA, Replayed: tree}}
}

// End compares what a replay that had all answers came to with what the record says:
// the end, the checks and the tree.
func (r Record) End(replay Replay) (found Differences) {
	if r.Finished == nil {
		return nil
	}
	if !r.Moved() { // else the checks on another base decided
		found.note("outcome", r.workEnd(), endInWords(replay.Stop))
	}
	r.reason(&found)
	tree := replay.Base
	if r.hasChange() {
		tree = r.Work.Change.TreeSHA
	}
	found.note("tree", tree, replay.Tree)
	r.checks(&found, replay.Checks)
	return found
}

// GoesOn compares a replay that asked for more answers than there are: the run ended
// there.
func (r Record) GoesOn(replay Replay, message string) Differences {
	found := Differences{{What: "end", Recorded: r.Finished.Message, Replayed: message}}
	r.checks(&found, replay.Checks)
	return found
}

func (r Record) checks(found *Differences, replayed []transcript.VerifyRow) {
	var recorded []transcript.VerifyRow
	if table := r.Work.Verify; table != nil {
		recorded = table.Rows
	}
	for i := range max(len(recorded), len(replayed)) {
		was, is := "(not there)", "(not there)"
		var name string
		if i < len(replayed) {
			name, is = replayed[i].Name, checkInWords(replayed[i])
		}
		if i < len(recorded) {
			name, was = recorded[i].Name, checkInWords(recorded[i])
		}
		found.note("check "+name, was, is)
	}
}

func checkInWords(row transcript.VerifyRow) string {
	return fmt.Sprintf("%s (%s): %s before, %s after, passed: %v", row.Name, row.Run, row.Before, cmp.Or(row.After, "not run"), row.Passed)
}
