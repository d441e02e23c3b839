package audit

import (
	"cmp"
	"context"
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

// Record is a recorded run with its view and job.
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

// CompareRequests rebuilds each request from the events and compares its digest with the recorded one. number
// counts the requests.
func (r Record) CompareRequests() (found Differences, number int, err error) {
	rebuilders := map[string]*model.RequestRebuilder{} // by agent
	_, err = r.FoldEvents(func(_ *transcript.View, e transcript.Event) error {
		if rebuilders[e.Agent] == nil {
			rebuilders[e.Agent] = r.newRebuilder()
		}
		rebuilder := rebuilders[e.Agent]
		switch d := e.Content.(type) {
		case transcript.ModelRequest:
			digest, err := rebuilder.Request(d.Settings, d.Input)
			if err != nil {
				return err
			}
			number++
			if !rebuilder.LacksImages() {
				found.addUnlessEqual(strings.TrimSpace(fmt.Sprintf("%s request of turn %d", e.Subagent(), d.Turn)), d.SHA256, digest)
			}
		case transcript.ModelResponse:
			rebuilder.Response(d.Output)
		case transcript.ModelFallback:
			rebuilder.Fallback(d.OmittedItems)
		case transcript.Compaction:
			rebuilder.Compaction(d.Items)
		}
		return nil
	})
	return found, number, err
}

// newRebuilder returns a rebuilder for requests to the API of the job.
func (r Record) newRebuilder() *model.RequestRebuilder {
	rebuilder := new(model.RequestRebuilder)
	if r.Job.Model.Wire == "chat" && r.Started.Scripted == "" {
		rebuilder.Model = new(chat.Client)
	}
	return rebuilder
}

// CompareOutputs compares the outputs of calls with those in a replay's directory. It ignores paths and the
// parts of headers that differ in each run. For commands, it also ignores times, ids, temporary folders and
// addresses. For searches, it ignores the order of lines. treePath is the replay's work folder.
func (r Record) CompareOutputs(recorded []transcript.ToolFinished, replay *record.Directory, treePath string) (found Differences, err error) {
	view, err := replay.View()
	if err != nil {
		return nil, err
	}
	paths := r.replayedToRecordedPaths(view, replay, treePath)
	replayed, err := readOutputs(replay, paths)
	if err != nil {
		return nil, err
	}
	polled, err := replayed.matchScriptCalls(r.Directory)
	if err != nil {
		return nil, err
	}
	byNumber := func(a, b transcript.ToolFinished) int { return a.Ref().Compare(b.Ref()) }
	recorded = slices.SortedStableFunc(slices.Values(recorded), byNumber) // calls side by side end in any order
	commands := findSessions(recorded, polled)
	for _, recordedCall := range recorded {
		difference := Difference{Subject: fmt.Sprintf("call %s (%s)", recordedCall.Ref(), recordedCall.Tool), ignoreVolatile: dialect.Is(recordedCall.Tool, dialect.Commands)}
		replayedCall, ran := replayed.resultFor(recordedCall.Ref())
		if !ran {
			replayedCall.Output, replayedCall.Failed = "(not called)", recordedCall.Failed
		}
		difference.Recorded, difference.Replayed = outputTexts(recordedCall, r.Directory, replayedCall, replay)
		difference.Replayed = paths.Replace(difference.Replayed)
		if isSearch(recordedCall.Tool) && slices.Equal(sortedLines(difference.Recorded), sortedLines(difference.Replayed)) {
			difference.Replayed = difference.Recorded
		}
		if ran && commands.joinWithEarlier(recordedCall.Ref(), &difference) {
			continue
		}
		found.addDifference(difference)
		sameOutput := difference.comparable(difference.Recorded) == difference.comparable(difference.Replayed)
		if sameOutput {
			found.addUnlessEqual(difference.Subject, describeFailed(recordedCall.Failed), describeFailed(replayedCall.Failed))
		}
	}
	return found, nil
}

// isSearch reports whether a tool lists files in the order of their times, which depends on the speed of the machine.
func isSearch(tool string) bool {
	return slices.Contains([]string{dialect.GrepFiles, dialect.GlobTool, dialect.GrepTool}, tool)
}

// sortedLines returns the lines of a text in the order of bytes.
func sortedLines(text string) []string { return slices.Sorted(strings.Lines(text + "\n")) }

// replayedToRecordedPaths returns a replacer of a replay's paths by the run's.
func (r Record) replayedToRecordedPaths(view *transcript.View, replay *record.Directory, treePath string) *strings.Replacer {
	var pairs []string
	if path := view.Policy.SandboxPath; path != "" { // ends in an id of the replay
		pairs = append(pairs, path, cmp.Or(r.Policy.SandboxPath, r.Workspace.Root))
	}
	pairs = append(pairs, treePath, r.Workspace.Root, replay.Path(), r.Directory.Path())
	return strings.NewReplacer(pairs...)
}

// replayOutputs has the results of a replay's calls.
type replayOutputs struct {
	results       map[transcript.CallRef]transcript.ToolFinished
	scriptCalls   transcript.ScriptCalls
	matchingCalls map[transcript.CallRef]transcript.CallRef // calls of scripts, by those of the record
	taken         map[transcript.CallRef]bool
}

// readOutputs reads the calls and results in a replay's directory. It replaces paths in the inputs of calls.
func readOutputs(dir *record.Directory, paths *strings.Replacer) (*replayOutputs, error) {
	r := &replayOutputs{
		results: map[transcript.CallRef]transcript.ToolFinished{}, matchingCalls: map[transcript.CallRef]transcript.CallRef{}, taken: map[transcript.CallRef]bool{},
	}
	_, err := dir.FoldEvents(func(_ *transcript.View, e transcript.Event) error {
		switch d := e.Content.(type) {
		case transcript.ToolStarted:
			d.Input = paths.Replace(d.Input)
			r.scriptCalls.Add(d)
		case transcript.ToolFinished:
			r.results[d.Ref()] = d
		}
		return nil
	})
	return r, err
}

// matchScriptCalls finds the replay's call for each call of a script in a recorded directory, because they may
// come in another order. polled has, by call, the session that the call asks for output.
func (r *replayOutputs) matchScriptCalls(dir *record.Directory) (polled map[transcript.CallRef]float64, err error) {
	polled = map[transcript.CallRef]float64{}
	_, err = dir.FoldEvents(func(_ *transcript.View, e transcript.Event) error {
		d, isStart := e.Content.(transcript.ToolStarted)
		if !isStart {
			return nil
		}
		if ref, found := r.scriptCalls.TakeEqual(d); found {
			r.matchingCalls[d.Ref()], r.taken[ref] = ref, true
		}
		if d.Tool == dialect.WriteStdin {
			polled[d.Ref()] = d.PolledSession()
		}
		return nil
	})
	return polled, err
}

// resultFor returns the result of a recorded call in the replay, or false if the replay did not make the call.
func (r *replayOutputs) resultFor(recorded transcript.CallRef) (transcript.ToolFinished, bool) {
	if replayedAs, known := r.matchingCalls[recorded]; known {
		result, ran := r.results[replayedAs]
		return result, ran
	}
	if r.taken[recorded] { // the call with this number is another one in the replay
		return transcript.ToolFinished{}, false
	}
	result, ran := r.results[recorded]
	return result, ran
}

// outputTexts returns the outputs of a recorded and a replayed call for comparison. If one was truncated, it
// returns the whole outputs if both were kept, because variable parts move the cut.
func outputTexts(recordedCall transcript.ToolFinished, recordedDir *record.Directory, replayedCall transcript.ToolFinished, replayDir *record.Directory) (recorded, replayed string) {
	if recordedCall.Truncated || replayedCall.Truncated {
		wholeRecorded, haveRecorded := uncutOutput(recordedCall, recordedDir)
		wholeReplayed, haveReplayed := uncutOutput(replayedCall, replayDir)
		if haveRecorded && haveReplayed {
			return wholeRecorded, wholeReplayed
		}
	}
	return removeVolatileHeader(recordedCall.Output), removeVolatileHeader(replayedCall.Output)
}

// uncutOutput returns a call's output before it was truncated for the model: the header above
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

// describeFailed says in words whether a call failed.
func describeFailed(failed bool) string {
	if failed {
		return "the call failed"
	}
	return "the call did not fail"
}

// CheckConsistency returns the contradictions in a record: in its chain, result, checks and end.
func (r Record) CheckConsistency(ctx context.Context) (found Differences) {
	if _, err := r.CheckChain(); err != nil && !errors.Is(err, record.ErrUnfinished) {
		found.addUnlessEqual("transcript", "as it was written", err.Error())
	}
	r.checkServers(ctx, &found)
	r.checkTable(&found)
	end := r.Finished
	if end == nil {
		return found
	}
	if r.Has(record.ResultFile) {
		if err := r.CheckResult(r.View); err != nil {
			found.addUnlessEqual(record.ResultFile, "as it was written", err.Error())
		}
	}
	impliedCode := (&outcome.Stop{Outcome: outcome.Outcome(end.Outcome), Reason: end.Reason}).ExitCode()
	found.addUnlessEqual("exit code", fmt.Sprint(end.ExitCode), fmt.Sprint(impliedCode))
	found.addUnlessEqual("outcome", end.Outcome, string(r.impliedOutcome()))
	r.checkReason(&found)
	return found
}

// checkServers compares the stored tool lists with their digests.
func (r Record) checkServers(ctx context.Context, found *Differences) {
	for _, server := range r.MCPServers {
		if server.File == "" {
			continue
		}
		current, err := r.Digest(ctx, server.File)
		if err != nil {
			current.SHA256 = err.Error()
		}
		found.addUnlessEqual(server.File, server.SHA256, current.SHA256)
	}
}

// checkTable compares the last verification table with the job's checks, and the verdicts in it with the
// states.
func (r Record) checkTable(found *Differences) {
	table := r.Work.Verify
	if table == nil {
		return
	}
	isBaseline := table.Attempt == 0 // whose checks have no verdict
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
		expected.Passed = !isBaseline && verify.Passes(expected)
		passed = passed && (expected.Passed || isBaseline)
		found.addUnlessEqual("check "+row.Name, describeCheck(row), describeCheck(expected))
	}
	found.addUnlessEqual("number of checks", fmt.Sprint(len(table.Rows)), fmt.Sprint(len(r.Job.Verify)))
	found.addUnlessEqual("all checks pass", fmt.Sprint(table.Passed), fmt.Sprint(passed))
}

// appliesToChange reports whether a check applies to the recorded change. An unreadable pattern applies.
func (r Record) appliesToChange(check job.VerifyCheck) bool {
	if r.Work.Change == nil {
		return false
	}
	applies, err := verify.AppliesTo(check, changeset.Paths(r.Work.Change.Files))
	return applies || err != nil
}

// checkReason compares the reason of the run's end with the last publishing step.
func (r Record) checkReason(found *Differences) {
	if !r.ChangeMoved() && r.Finished.Outcome == string(r.outcomeOfWork()) {
		found.addUnlessEqual("reason", r.Finished.Reason, r.reasonOfWork())
	}
}

// ComparePatch compares the patch of the change with its digest. It skips a missing patch, and that of a
// published bundle, because agent-ci publish rewrites it.
func (r Record) ComparePatch(ctx context.Context) (found Differences, err error) {
	change := r.Work.Change
	if change == nil {
		return nil, nil
	}
	wasRewritten := r.ChangeMoved() || r.Has(record.PublishFile)
	if wasRewritten || !r.Has(change.Patch) {
		return nil, nil
	}
	current, err := r.Digest(ctx, change.Patch)
	if err == nil {
		found.addUnlessEqual(change.Patch, change.SHA256, current.SHA256)
	}
	return found, err
}

// CompareFiles compares the files of a rebuilt change with the recorded ones. tree is the rebuilt change's
// tree.
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
		found.addUnlessEqual("outcome", r.describeRecordedEnd(), describeEnd(replay.Stop))
	}
	r.checkReason(&found)
	tree := replay.Base
	if !r.Work.Change.Empty() {
		tree = r.Work.Change.TreeSHA
	}
	found.addUnlessEqual("tree", tree, replay.Tree)
	r.compareChecks(&found, replay.Checks)
	return found
}

// ReportMissingAnswers returns the differences of a replay that ran out of recorded answers.
func (r Record) ReportMissingAnswers(replay Replay) Differences {
	found := Differences{{Subject: "end", Recorded: r.Finished.Message, Replayed: replay.Stop.Message}}
	r.compareChecks(&found, replay.Checks)
	return found
}

// compareChecks adds the checks whose results differ, row by row.
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
		found.addUnlessEqual("check "+name, recordedWords, replayedWords)
	}
}

// describeCheck returns the row of a check as text for comparison.
func describeCheck(row transcript.VerifyRow) string {
	return fmt.Sprintf("%s (%s): %s before, %s after, passed: %v", row.Name, row.Run, row.Before, cmp.Or(row.After, "not run"), row.Passed)
}
