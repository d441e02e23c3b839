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

// CompareRequests rebuilds each request from the events and compares its digest. number counts the requests.
func (r Record) CompareRequests() (found Differences, number int, err error) {
	rebuilders := map[string]*model.RequestRebuilder{} // by agent
	_, err = r.FoldEvents(func(_ *transcript.View, e transcript.Event) error {
		switch e.Type {
		case transcript.TypeModelRequest, transcript.TypeModelResponse, transcript.TypeModelFallback, transcript.TypeCompaction:
		default:
			return nil
		}
		var d conversationEvent
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return err
		}
		if rebuilders[e.Agent] == nil {
			rebuilders[e.Agent] = r.newRebuilder()
		}
		rebuilder := rebuilders[e.Agent]
		switch e.Type {
		case transcript.TypeModelRequest:
			digest, err := rebuilder.Request(d.Settings, d.Input)
			if err != nil {
				return err
			}
			number++
			if !rebuilder.LacksImages() {
				found.compare(strings.TrimSpace(fmt.Sprintf("%s request of turn %d", e.OtherAgent(), d.Turn)), d.SHA256, digest)
			}
		case transcript.TypeModelResponse:
			rebuilder.Response(d.Output)
		case transcript.TypeModelFallback:
			rebuilder.Fallback(d.OmittedItems)
		case transcript.TypeCompaction:
			rebuilder.Compaction(d.Items)
		}
		return nil
	})
	return found, number, err
}

// conversationEvent has the fields of all events that change the next request.
type conversationEvent struct {
	Turn                 int
	SHA256               string
	Settings             json.RawMessage
	Input, Output, Items []json.RawMessage
	OmittedItems         []int `json:"left_out"`
}

// newRebuilder returns a rebuilder for requests to the API of the job.
func (r Record) newRebuilder() *model.RequestRebuilder {
	rebuilder := new(model.RequestRebuilder)
	if r.Job.Model.Wire == "chat" && r.Started.Scripted == "" {
		rebuilder.Body = chat.Body
	}
	return rebuilder
}

// CompareOutputs compares calls' outputs with a replay's directory, ignoring the work's folder and
// single-run parts of headers. It compares commands by exit status and by lines without times, ids,
// temporary folders and addresses. treePath is the replay's work folder.
func (r Record) CompareOutputs(recorded []transcript.ToolFinished, replay *record.Directory, treePath string) (found Differences, err error) {
	view, err := replay.View()
	if err != nil {
		return nil, err
	}
	places := r.replayedToRecordedPaths(view, replay, treePath)
	replayed, err := outputsIn(replay, places)
	if err != nil {
		return nil, err
	}
	polled, err := replayed.matchCalls(r.Directory)
	if err != nil {
		return nil, err
	}
	byNumber := func(a, b transcript.ToolFinished) int { return a.Ref().Compare(b.Ref()) }
	recorded = slices.SortedStableFunc(slices.Values(recorded), byNumber) // calls side by side end in any order
	commands := sessionsOf(recorded, polled)
	for _, recordedCall := range recorded {
		difference := Difference{Subject: fmt.Sprintf("call %s (%s)", recordedCall.Ref(), recordedCall.Tool), ignoreVolatile: dialect.Is(recordedCall.Tool, dialect.Commands)}
		replayedCall, ran := replayed.resultFor(recordedCall.Ref())
		if !ran {
			replayedCall.Output, replayedCall.Failed = "(not called)", recordedCall.Failed
		}
		difference.Recorded, difference.Replayed = outputTexts(recordedCall, r.Directory, replayedCall, replay)
		difference.Replayed = places.Replace(difference.Replayed)
		if ran && commands.prependEarlier(recordedCall.Ref(), &difference) {
			continue
		}
		found.addIfDifferent(difference)
		sameOutput := difference.textForComparison(difference.Recorded) == difference.textForComparison(difference.Replayed)
		if sameOutput {
			found.compare(difference.Subject, describeFailed(recordedCall.Failed), describeFailed(replayedCall.Failed))
		}
	}
	return found, err
}

// replayedToRecordedPaths replaces the paths of a replay by those of the run.
func (r Record) replayedToRecordedPaths(view *transcript.View, replay *record.Directory, treePath string) *strings.Replacer {
	var pairs []string
	if path := view.Policy.SandboxPath; path != "" { // ends in an id of the replay
		pairs = append(pairs, path, cmp.Or(r.Policy.SandboxPath, r.Workspace.Root))
	}
	pairs = append(pairs, treePath, r.Workspace.Root, replay.Path(), r.Directory.Path())
	return strings.NewReplacer(pairs...)
}

type replayOutputs struct {
	results       map[transcript.CallRef]transcript.ToolFinished
	scriptCalls   transcript.ScriptCalls
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
			r.scriptCalls.Add(d)
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
		if ref, found := r.scriptCalls.TakeEqual(d); found {
			r.matchingCalls[d.Ref()], r.matched[ref] = ref, true
		}
		polled[d.Ref()] = polledSession(d)
		return err
	})
	return polled, err
}

// resultFor returns a recorded call's result in the replay.
func (r *replayOutputs) resultFor(recorded transcript.CallRef) (transcript.ToolFinished, bool) {
	if replayedAs, known := r.matchingCalls[recorded]; known {
		result, ran := r.results[replayedAs]
		return result, ran
	}
	if r.matched[recorded] { // the call with this number is another one in the replay
		return transcript.ToolFinished{}, false
	}
	result, ran := r.results[recorded]
	return result, ran
}

// outputTexts returns two outputs for comparison: if one was cut, the whole ones if kept, since variable
// parts move the cut.
func outputTexts(recordedCall transcript.ToolFinished, before *record.Directory, replayedCall transcript.ToolFinished, after *record.Directory) (recorded, replayed string) {
	if recordedCall.Truncated || replayedCall.Truncated {
		recorded, haveRecorded := uncutOutput(recordedCall, before)
		replayed, haveReplayed := uncutOutput(replayedCall, after)
		if haveRecorded && haveReplayed {
			return recorded, replayed
		}
	}
	return removeVolatileHeader(recordedCall.Output), removeVolatileHeader(replayedCall.Output)
}

// uncutOutput returns a call's output as it was before it was shortened for the model: the header above
// the warning of the cut, then the recorded file. available is false if no such file was recorded.
func uncutOutput(d transcript.ToolFinished, dir *record.Directory) (text string, available bool) {
	if !d.Truncated {
		return removeVolatileHeader(d.Output), true
	}
	if d.File == "" {
		return "", false
	}
	content, err := dir.Read(d.File)
	head, _, _ := strings.Cut(d.Output, tools.CutWarning)
	return removeVolatileHeader(head) + string(content), err == nil
}

func describeFailed(failed bool) string {
	if failed {
		return "the call failed"
	}
	return "the call did not fail"
}

// CheckConsistency finds contradictions in a record: chain, result, checks and end.
func (r Record) CheckConsistency(ctx context.Context) (found Differences) {
	if _, err := r.CheckChain(); err != nil && !errors.Is(err, record.ErrUnfinished) {
		found.compare("transcript", "as it was written", err.Error())
	}
	r.checkServers(ctx, &found)
	r.checkRows(&found)
	end := r.Finished
	if end == nil {
		return found
	}
	if r.Has(record.ResultFile) {
		if err := r.CheckResult(r.View); err != nil {
			found.compare(record.ResultFile, "as it was written", err.Error())
		}
	}
	impliedCode := (&outcome.Stop{Outcome: outcome.Outcome(end.Outcome), Reason: end.Reason}).ExitCode()
	found.compare("exit code", fmt.Sprint(end.ExitCode), fmt.Sprint(impliedCode))
	found.compare("outcome", end.Outcome, string(r.impliedOutcome()))
	r.checkReason(&found)
	return found
}

// checkServers compares stored tool lists with their digests.
func (r Record) checkServers(ctx context.Context, found *Differences) {
	for _, server := range r.MCPServers {
		if server.File == "" {
			continue
		}
		current, err := r.Digest(ctx, server.File)
		if err != nil {
			current.SHA256 = err.Error()
		}
		found.compare(server.File, server.SHA256, current.SHA256)
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
		expected := row
		if i < len(r.Job.Verify) {
			check := r.Job.Verify[i]
			expected.Name, expected.Run, expected.Must, expected.Flaky = check.Name, check.Run, check.Must, ""
			if check.Flaky == "accept" {
				expected.Flaky = check.Flaky
			}
			if row.NotRun == transcript.NotConcerned && r.appliesToChange(check) {
				expected.NotRun = ""
			}
		}
		expected.Passed = table.Attempt > 0 && verify.Passes(expected)
		passed = passed && (expected.Passed || table.Attempt == 0)
		found.compare("check "+row.Name, describeCheck(row), describeCheck(expected))
	}
	found.compare("number of checks", fmt.Sprint(len(table.Rows)), fmt.Sprint(len(r.Job.Verify)))
	found.compare("all checks pass", fmt.Sprint(table.Passed), fmt.Sprint(passed))
}

// appliesToChange reports whether a check is for the recorded change. An unreadable pattern matches any.
func (r Record) appliesToChange(check job.VerifyCheck) bool {
	if r.Work.Change == nil {
		return false
	}
	applies, err := verify.AppliesTo(check, changeset.Paths(r.Work.Change.Files))
	return applies || err != nil
}

// checkReason compares the end's reason with the last publishing step.
func (r Record) checkReason(found *Differences) {
	if !r.ChangeMoved() && r.Finished.Outcome == string(r.outcomeOfWork()) {
		found.compare("reason", r.Finished.Reason, r.reasonOfWork())
	}
}

// ComparePatch compares the patch of the change with its digest. It skips the patch of a published bundle, which the
// second half rewrote.
func (r Record) ComparePatch(ctx context.Context) (found Differences, err error) {
	change := r.Work.Change
	if change == nil || r.ChangeMoved() || r.Has(record.PublishFile) || !r.Has(change.Patch) {
		return nil, nil
	}
	current, err := r.Digest(ctx, change.Patch)
	if err == nil {
		found.compare(change.Patch, change.SHA256, current.SHA256)
	}
	return found, err
}

// CompareFiles compares the change's files with the recorded ones. tree is the objects'.
func (r Record) CompareFiles(files []changeset.File, tree string) Differences {
	if changeset.Same(files, r.Work.Change.Files) {
		return nil
	}
	return Differences{{Subject: "change", Recorded: r.Work.Change.TreeSHA, Replayed: tree}}
}

// CompareEnd compares a complete replay with the record: end, checks and tree.
func (r Record) CompareEnd(replay Replay) (found Differences) {
	if r.Finished == nil {
		return nil
	}
	if !r.ChangeMoved() { // else the checks on another base decided
		found.compare("outcome", r.describeRecordedEnd(), describeEnd(replay.Stop))
	}
	r.checkReason(&found)
	tree := replay.Base
	if r.hasChange() {
		tree = r.Work.Change.TreeSHA
	}
	found.compare("tree", tree, replay.Tree)
	r.compareChecks(&found, replay.Checks)
	return found
}

// ReportMissingAnswers reports a replay that wanted more answers than recorded.
func (r Record) ReportMissingAnswers(replay Replay) Differences {
	found := Differences{{Subject: "end", Recorded: r.Finished.Message, Replayed: replay.Stop.Message}}
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
		recordedWords, replayedWords := "(not there)", "(not there)"
		var name string
		if i < len(replayed) {
			name, replayedWords = replayed[i].Name, describeCheck(replayed[i])
		}
		if i < len(recorded) {
			name, recordedWords = recorded[i].Name, describeCheck(recorded[i])
		}
		found.compare("check "+name, recordedWords, replayedWords)
	}
}

func describeCheck(row transcript.VerifyRow) string {
	return fmt.Sprintf("%s (%s): %s before, %s after, passed: %v", row.Name, row.Run, row.Before, cmp.Or(row.After, "not run"), row.Passed)
}
