package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/chat"
	"github.com/agent-ci/agent-ci/runner/check/verify"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/dialect"
)

// Record is a run as recorded in its directory.
type Record struct {
	*record.Directory
	*transcript.View
	Job *job.Job // with the limits that it had last
}

// Replay is the result of a replay.
type Replay struct {
	Stop   *outcome.Stop // nil if nothing ran
	Base   string        // tree of the base commit
	Tree   string        // of the change; the base's when nothing changed
	Checks []transcript.VerifyRow
}

// Requests rebuilds each request from the events and compares its digest. number counts the requests.
func (r Record) Requests() (found Differences, number int, err error) {
	all := map[string]*model.RequestRebuilder{} // by agent
	_, err = r.FoldEvents(func(_ *transcript.View, e transcript.Event) error {
		var d struct {
			Turn                 int
			SHA256               string
			Settings             json.RawMessage
			Input, Output, Items []json.RawMessage
			ID, Status           string
			LeftOut              []int `json:"left_out"`
		}
		switch e.Type {
		case transcript.TypeModelRequest, transcript.TypeModelResponse, transcript.TypeModelFallback, transcript.TypeCompaction:
		default:
			return nil
		}
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return err
		}
		if all[e.Agent] == nil {
			all[e.Agent] = new(model.RequestRebuilder)
			if r.Job.Model.Wire == "chat" && r.Started.Scripted == "" {
				all[e.Agent].Body = chat.Body
			}
		}
		rebuilt := all[e.Agent]
		switch e.Type {
		case transcript.TypeModelRequest:
			digest, err := rebuilt.Request(d.Settings, d.Input)
			if err != nil {
				return err
			}
			number++
			if digest != d.SHA256 && !rebuilt.LacksImages() {
				found.note(strings.TrimSpace(fmt.Sprintf("%s request of turn %d", e.OtherAgent(), d.Turn)), d.SHA256, digest)
			}
		case transcript.TypeModelResponse:
			rebuilt.Response(d.Output)
		case transcript.TypeModelFallback:
			rebuilt.Fallback(d.LeftOut)
		case transcript.TypeCompaction:
			rebuilt.Compaction(d.Items)
		}
		return nil
	})
	return found, number, err
}

// Outputs compares calls' outputs with a replay's directory, ignoring the work's folder and
// single-run parts of headers. It compares commands by exit status and by lines without times, ids,
// temporary folders and addresses. at is the replay's work folder.
func (r Record) Outputs(recorded []transcript.ToolFinished, replay *record.Directory, at string) (found Differences, err error) {
	view, err := replay.View()
	if err != nil {
		return nil, err
	}
	pairs := []string{at, r.Workspace.Root, replay.Path(), r.Directory.Path()}
	if seen := view.Policy.SandboxPath; seen != "" { // ends in an id of the run
		pairs = append([]string{seen, cmp.Or(r.Policy.SandboxPath, r.Workspace.Root)}, pairs...)
	}
	places := strings.NewReplacer(pairs...)
	now, err := outputsIn(replay, places)
	if err != nil {
		return nil, err
	}
	polled, err := now.matchCalls(r.Directory)
	if err != nil {
		return nil, err
	}
	byNumber := func(a, b transcript.ToolFinished) int { return a.Ref().Compare(b.Ref()) }
	recorded = slices.SortedStableFunc(slices.Values(recorded), byNumber) // calls side by side end in any order
	commands := sessionsOf(recorded, polled)
	for _, was := range recorded {
		d := Difference{What: fmt.Sprintf("call %s (%s)", was.Ref(), was.Tool), masked: dialect.Is(was.Tool, dialect.Commands)}
		is, ran := now.resultFor(was.Ref())
		if !ran {
			is.Output, is.Failed = "(not called)", was.Failed
		}
		d.Recorded, d.Replayed = texts(was, r.Directory, is, replay)
		d.Replayed = places.Replace(d.Replayed)
		if ran && commands.prependEarlier(was.Ref(), &d) {
			continue
		}
		found.add(d)
		if was.Failed != is.Failed && d.textForComparison(d.Recorded) == d.textForComparison(d.Replayed) {
			found.note(d.What, failedInWords(was.Failed), failedInWords(is.Failed))
		}
	}
	return found, err
}

type replayOutputs struct {
	results       map[transcript.CallRef]transcript.ToolFinished
	nested        transcript.ScriptCalls
	matchingCalls map[transcript.CallRef]transcript.CallRef // calls of scripts, by those of the record
	matched       map[transcript.CallRef]bool
}

// outputsIn reads a directory's outputs, with places replaced in requests.
func outputsIn(dir *record.Directory, places *strings.Replacer) (*replayOutputs, error) {
	r := &replayOutputs{
		results: map[transcript.CallRef]transcript.ToolFinished{}, matchingCalls: map[transcript.CallRef]transcript.CallRef{}, matched: map[transcript.CallRef]bool{},
	}
	_, err := dir.FoldEvents(func(_ *transcript.View, e transcript.Event) (err error) {
		switch e.Type {
		case transcript.TypeToolStarted:
			var d transcript.ToolStarted
			err = json.Unmarshal(e.Data, &d)
			d.Agent, d.Input = e.OtherAgent(), places.Replace(d.Input)
			r.nested.Add(d)
		case transcript.TypeToolFinished:
			var d transcript.ToolFinished
			err = json.Unmarshal(e.Data, &d)
			d.Agent = e.OtherAgent()
			r.results[d.Ref()] = d
		}
		return err
	})
	return r, err
}

// matchCalls matches a directory's calls of scripts, which may come in another order. polled has
// the sessions named by calls.
func (r *replayOutputs) matchCalls(dir *record.Directory) (polled map[transcript.CallRef]float64, err error) {
	polled = map[transcript.CallRef]float64{}
	_, err = dir.FoldEvents(func(_ *transcript.View, e transcript.Event) error {
		if e.Type != transcript.TypeToolStarted {
			return nil
		}
		var d transcript.ToolStarted
		err := json.Unmarshal(e.Data, &d)
		d.Agent = e.OtherAgent()
		if ref, is := r.nested.TakeEqual(d); is {
			r.matchingCalls[d.Ref()], r.matched[ref] = ref, true
		}
		polled[d.Ref()] = polledSession(d)
		return err
	})
	return polled, err
}

// resultFor returns a recorded call's result in the replay.
func (r *replayOutputs) resultFor(was transcript.CallRef) (transcript.ToolFinished, bool) {
	ref, is := r.matchingCalls[was]
	if !is && r.matched[was] {
		return transcript.ToolFinished{}, false
	}
	if !is {
		ref = was
	}
	d, ran := r.results[ref]
	return d, ran
}

// texts returns two outputs for comparison: if one was cut, the whole ones if kept, since variable
// parts move the cut.
func texts(was transcript.ToolFinished, before *record.Directory, is transcript.ToolFinished, after *record.Directory) (recorded, replayed string) {
	if was.Truncated || is.Truncated {
		recorded, kept := uncutOutput(was, before)
		replayed, also := uncutOutput(is, after)
		if kept && also {
			return recorded, replayed
		}
	}
	return withoutVolatile(was.Output), withoutVolatile(is.Output)
}

// uncutOutput returns a call's output as it was before it was shortened for the model: the header above
// the warning of the cut, then the recorded file. kept is false if no such file was recorded.
func uncutOutput(d transcript.ToolFinished, dir *record.Directory) (text string, kept bool) {
	if !d.Truncated {
		return withoutVolatile(d.Output), true
	}
	if d.File == "" {
		return "", false
	}
	content, err := dir.Read(d.File)
	head, _, _ := strings.Cut(d.Output, tools.CutWarning)
	return withoutVolatile(head) + string(content), err == nil
}

func failedInWords(failed bool) string {
	if failed {
		return "the call failed"
	}
	return "the call did not fail"
}

// CheckConsistency finds contradictions in a record: chain, result, checks and end.
func (r Record) CheckConsistency(ctx context.Context) (found Differences) {
	if _, err := r.CheckChain(); err != nil && !errors.Is(err, record.ErrUnfinished) {
		found.note("transcript", "as it was written", err.Error())
	}
	r.checkServers(ctx, &found)
	r.checkRows(&found)
	end := r.Finished
	if end == nil {
		return found
	}
	if r.Has(record.ResultFile) {
		if err := r.CheckResult(r.View); err != nil {
			found.note(record.ResultFile, "as it was written", err.Error())
		}
	}
	follows := (&outcome.Stop{Outcome: outcome.Outcome(end.Outcome), Reason: end.Reason}).ExitCode()
	found.note("exit code", fmt.Sprint(end.ExitCode), fmt.Sprint(follows))
	found.note("outcome", end.Outcome, string(r.impliedOutcome()))
	r.checkReason(&found)
	return found
}

// checkServers compares stored tool lists with their digests.
func (r Record) checkServers(ctx context.Context, found *Differences) {
	for _, server := range r.MCPServers {
		if server.File == "" {
			continue
		}
		is, err := r.Digest(ctx, server.File)
		if err != nil {
			is.SHA256 = err.Error()
		}
		found.note(server.File, server.SHA256, is.SHA256)
	}
}

// checkRows compares a record's last table with its job's checks, and passed with the results.
func (r Record) checkRows(found *Differences) {
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

// concerns reports whether a check is for the recorded change. An unreadable pattern matches any.
func (r Record) concerns(check job.VerifyCheck) bool {
	if r.Work.Change == nil {
		return false
	}
	is, err := verify.AppliesTo(check, changeset.Paths(r.Work.Change.Files))
	return is || err != nil
}

// checkReason compares the end's reason with the last publishing step.
func (r Record) checkReason(found *Differences) {
	if !r.ChangeMoved() && r.Finished.Outcome == string(r.outcomeOfWork()) {
		found.note("reason", r.Finished.Reason, r.reasonOfWork())
	}
}

// Patch compares the patch of the change with its digest. It skips the patch of a published bundle, which the
// second half rewrote.
func (r Record) Patch(ctx context.Context) (found Differences, err error) {
	change := r.Work.Change
	if change == nil || r.ChangeMoved() || r.Has(record.PublishFile) || !r.Has(change.Patch) {
		return nil, nil
	}
	is, err := r.Digest(ctx, change.Patch)
	if err == nil {
		found.note(change.Patch, change.SHA256, is.SHA256)
	}
	return found, err
}

// Files compares the change's files with the recorded ones. tree is the objects'.
func (r Record) Files(files []changeset.File, tree string) Differences {
	if changeset.Same(files, r.Work.Change.Files) {
		return nil
	}
	return Differences{{What: "change", Recorded: r.Work.Change.TreeSHA, Replayed: tree}}
}

// CompareEnd compares a complete replay with the record: end, checks and tree.
func (r Record) CompareEnd(replay Replay) (found Differences) {
	if r.Finished == nil {
		return nil
	}
	if !r.ChangeMoved() { // else the checks on another base decided
		found.note("outcome", r.workEnd(), endInWords(replay.Stop))
	}
	r.checkReason(&found)
	tree := replay.Base
	if r.hasChange() {
		tree = r.Work.Change.TreeSHA
	}
	found.note("tree", tree, replay.Tree)
	r.compareChecks(&found, replay.Checks)
	return found
}

// ReportMissingAnswers reports a replay that wanted more answers than recorded.
func (r Record) ReportMissingAnswers(replay Replay) Differences {
	found := Differences{{What: "end", Recorded: r.Finished.Message, Replayed: replay.Stop.Message}}
	r.compareChecks(&found, replay.Checks)
	return found
}

// compareChecks notes the checks whose results differ, row by row.
func (r Record) compareChecks(found *Differences, replayed []transcript.VerifyRow) {
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
