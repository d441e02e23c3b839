package verify

import (
	"context"
	"fmt"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/check/verify/testresults"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// showBaseResult stores the result of check i on the base in a row, with its failing tests.
func (c Checks) showBaseResult(ctx context.Context, row *transcript.VerifyRow, i int, r result) error {
	row.Before, row.CachedFrom = r.state, r.fromRun
	tests, err := c.storeResult(ctx, row, i, r)
	if err != nil || tests == nil { // nil: the check did not run
		return err
	}
	c.listFailing(row, tests, testresults.Change{})
	if advice := networkAdvice("policy.network", c.Job.Policy.Network, row.Run, tests.output); advice != "" {
		c.Record.Warn("check_network", "%s is red on the base. %s", row.Name, advice)
	}
	listsAllFailures := row.Before != "timeout" && row.FailingMore == 0 && tests.Complete()
	row.BeforePartial = row.Before != "green" && !listsAllFailures
	return nil
}

// showChangeResult stores the result of check i on the change in a row that has the base result.
func (c Checks) showChangeResult(ctx context.Context, row *transcript.VerifyRow, i int, r result, change *gitops.ChangeSet) error {
	baseRow := *row
	before := testsBefore(baseRow)
	tests, err := c.storeResult(ctx, row, i, r)
	row.Worse = ""
	if err != nil {
		return err
	}
	if didNotRun := tests == nil; didNotRun {
		return nil
	}
	isGreenNow := transcript.DecidingRun(r.runs).State == "green"
	difference := testresults.Compare(before, tests.Results, isGreenNow)
	silent, err := c.testsOutsideChange(difference.Silent, change)
	if err != nil {
		return fmt.Errorf("look for fixed tests: %w", err)
	}
	row.Fixed = append(difference.Fixed, silent...)
	c.listFailing(row, tests, difference)
	row.Worse, err = c.whyWorse(baseRow, r, tests, difference)
	return err
}

// whyWorse returns why a check that was not green on the base is worse now, apart from known failures, or "".
func (c Checks) whyWorse(baseRow transcript.VerifyRow, r result, now *reportedTests, difference testresults.Change) (string, error) {
	failsNow := r.state == "red" || r.state == "timeout"
	failedBefore := baseRow.Before != "green" && baseRow.Before != ""
	if !failsNow || !failedBefore {
		return "", nil
	}
	if len(difference.New) > 0 {
		return transcript.CountNoun(len(difference.New), "test") + " failed that did not fail before", nil
	}
	if r.state == "timeout" {
		if baseRow.Before != "timeout" {
			return "it reached its timeout, which it did not before", nil
		}
		return "", nil
	}
	loaded, err := c.loadedBefore(baseRow, now)
	if err != nil || !loaded {
		return "", err
	}
	return "something does not compile or load that did before", nil
}

// loadedBefore reports whether something has a load error now, such as a compiler error, and loaded on the base. If
// the results now name load errors, loadedBefore looks for one that the base does not name as failing. Otherwise it
// compares the outputs. It returns false if the base's names or output are incomplete.
func (c Checks) loadedBefore(baseRow transcript.VerifyRow, now *reportedTests) (bool, error) {
	failedBefore := map[string]bool{}
	for _, t := range baseRow.Failing {
		failedBefore[t.Name] = true
	}
	namesLoadError := false
	for _, t := range now.Failing {
		if t.LoadError && !failedBefore[c.Record.Redact(t.Name)] && baseRow.FailingMore == 0 {
			return true, nil
		}
		namesLoadError = namesLoadError || t.LoadError
	}
	if namesLoadError || baseRow.Log == "" || baseRow.Before == "timeout" {
		return false, nil
	}
	output, err := c.Record.HeadAndTail(baseRow.Log, maxTestFileBytes, maxTestFileBytes)
	if err != nil {
		return false, fmt.Errorf("read %s: %w", baseRow.Log, err)
	}
	return failsToLoad(now.Results, now.output) && !loadErrorPatterns().MatchString(output), nil
}

// reportedTests are the tests in a check's runs on one tree.
type reportedTests struct {
	*testresults.Results
	runs   map[string][]int // runs that name a failing test, from 1, if not all red runs name it
	output string           // of the deciding run
}

// storeResult stores a result in a row and returns its tests, or nil if nothing ran. It joins the
// tests of all runs with the deciding state, because several red runs may fail for different
// reasons.
func (c Checks) storeResult(ctx context.Context, row *transcript.VerifyRow, i int, r result) (*reportedTests, error) {
	deciding := transcript.DecidingRun(r.runs)
	row.NotRun, row.Runs, row.Seconds, row.Log = r.notRun, r.runs, deciding.Seconds, deciding.Log
	row.Tail, row.Failing, row.FailingMore, row.Fixed = "", nil, 0, nil
	if len(r.runs) == 0 {
		return nil, nil
	}
	var err error
	if row.Tail, err = c.tail(deciding.State, row.Log); err != nil {
		return nil, err
	}
	reported, err := c.joinTests(ctx, c.Job.Verify[i], r.runs, deciding.State)
	if err != nil {
		return nil, err
	}
	if deciding.State == "red" {
		if reported.output, err = c.Record.HeadAndTail(row.Log, maxTestFileBytes, maxTestFileBytes); err != nil {
			return nil, fmt.Errorf("read %s: %w", row.Log, err)
		}
	}
	return reported, nil
}

// joinTests joins the tests of the runs with a state. If a test failed in only some of these runs, it lists them.
func (c Checks) joinTests(ctx context.Context, check job.VerifyCheck, runs []transcript.CheckRun, state string) (*reportedTests, error) {
	joined := &reportedTests{Results: &testresults.Results{}, runs: map[string][]int{}}
	joinedRuns := 0
	for n, run := range runs {
		if run.State != state {
			continue
		}
		results, err := c.readTests(ctx, check, run.Log)
		if err != nil {
			return nil, err
		}
		joinedRuns++
		for _, t := range results.Failing {
			joined.runs[t.Name] = append(joined.runs[t.Name], n+1)
		}
		joined.Join(results)
	}
	for name, failingRuns := range joined.runs {
		if len(failingRuns) == joinedRuns {
			delete(joined.runs, name)
		}
	}
	return joined, nil
}

// listFailing lists the failing tests in a row, unless it is green, and redacts the row.
func (c Checks) listFailing(row *transcript.VerifyRow, tests *reportedTests, difference testresults.Change) {
	if transcript.DecidingRun(row.Runs).State != "green" {
		all := failingTests(tests, difference)
		row.Failing = all[:min(len(all), maxFailingTests)]
		row.FailingMore = tests.More + len(all) - len(row.Failing)
	}
	c.redact(row)
}

// redact redacts a row again: removing terminal sequences from the log may have joined a secret.
func (c Checks) redact(row *transcript.VerifyRow) {
	row.Tail = c.Record.Redact(row.Tail)
	for i := range row.Failing {
		t := &row.Failing[i]
		t.Name, t.File, t.Message = c.Record.Redact(t.Name), c.Record.Redact(t.File), c.Record.Redact(t.Message)
	}
	for i := range row.Fixed {
		row.Fixed[i] = c.Record.Redact(row.Fixed[i])
	}
}

// testsBefore returns the tests of a row's base result.
func testsBefore(row transcript.VerifyRow) testresults.BaseResults {
	before := testresults.BaseResults{Green: row.Before == "green", Complete: !row.BeforePartial}
	for _, t := range row.Failing {
		if !t.New {
			before.Failing = append(before.Failing, t.Name)
		}
	}
	before.Failing = append(before.Failing, row.Fixed...)
	return before
}

const (
	// maxFailingTests bounds the failing tests in a row.
	maxFailingTests = 500
	// maxFailureMessages bounds those with a message.
	maxFailureMessages = 50
)

// failingTests returns the failing tests, new ones first. Only the first ones keep their messages.
func failingTests(tests *reportedTests, difference testresults.Change) []transcript.FailingTest {
	newNames := map[string]bool{}
	for _, name := range difference.New {
		newNames[name] = true
	}
	var all []transcript.FailingTest
	for _, isNew := range []bool{true, false} {
		for _, t := range tests.Failing {
			if newNames[t.Name] != isNew {
				continue
			}
			shown := transcript.FailingTest{Name: t.Name, File: t.File, Line: t.Line, Message: t.Message, New: isNew, FailingRuns: tests.runs[t.Name]}
			if len(all) >= maxFailureMessages {
				shown.Message = ""
			}
			all = append(all, shown)
		}
	}
	return all
}

// readTestsTimeout limits the time for reading tests from an output.
const readTestsTimeout = time.Minute

// readTests returns the tests of a check's run, from its reports or else its output. Unreadable results
// are a warning, because they do not decide whether the check passes.
func (c Checks) readTests(ctx context.Context, check job.VerifyCheck, log string) (*testresults.Results, error) {
	if results := c.resultsFromReports(check, log); results != nil {
		return results, nil
	}
	output, err := c.Record.Open(log)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", log, err)
	}
	defer output.Close()
	reading, cancel := context.WithTimeoutCause(ctx, readTestsTimeout, fmt.Errorf("that takes longer than %s", readTestsTimeout))
	defer cancel()
	results, err := testresults.Read(reading, output, c.relativePaths)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		c.Record.Warn("test_results", "The test results in the output of %s can't be read: %v.", check.Name, err)
		return &testresults.Results{}, nil
	}
	return results, c.addFolders(ctx, results)
}

// tail returns the last lines of a command's log for people, or "" if state is green.
func (c Checks) tail(state, log string) (string, error) {
	if state == "green" {
		return "", nil
	}
	lines, err := c.Record.LastLines(log)
	if err != nil {
		return "", fmt.Errorf("read the end of %s: %w", log, err)
	}
	return lines, nil
}
