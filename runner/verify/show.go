package verify

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/verify/testresults"
)

// show has a row tell of what its check says of the base.
func (c Checks) show(ctx context.Context, row *transcript.VerifyRow, i int, r result) error {
	tests, err := c.put(ctx, row, i, r)
	if err != nil || tests == nil {
		return err
	}
	c.list(row, tests, testresults.Change{})
	row.BeforePartial = row.Before != "green" && (row.Before == "timeout" || row.FailingMore > 0 || !tests.Complete())
	return nil
}

// showChange has a row, which tells of the base, tell of what its check says of a change.
func (c Checks) showChange(ctx context.Context, row *transcript.VerifyRow, i int, r result, change *gitops.ChangeSet) error {
	before := testsBefore(*row)
	tests, err := c.put(ctx, row, i, r)
	if err != nil || tests == nil {
		return err
	}
	became := testresults.Compare(before, tests, transcript.Deciding(r.runs).State == "green")
	silent, err := c.untouched(became.Silent, change)
	if err != nil {
		return fmt.Errorf("look for what was mended: %w", err)
	}
	row.Mended = append(became.Mended, silent...)
	c.list(row, tests, became)
	return nil
}

// put puts a result into a row, and gives what it tells of tests; nil where nothing ran.
func (c Checks) put(ctx context.Context, row *transcript.VerifyRow, i int, r result) (tests *testresults.Results, err error) {
	r.put(row)
	row.Tail, row.Failing, row.FailingMore, row.Mended = "", nil, 0, nil
	if len(r.runs) == 0 {
		return nil, nil
	}
	if row.Tail, err = c.tail(transcript.Deciding(r.runs).State, row.Log); err != nil {
		return nil, err
	}
	return c.tests(ctx, c.Job.Verify[i], row.Log)
}

// list has a row name the tests that fail, unless it is green.
func (c Checks) list(row *transcript.VerifyRow, tests *testresults.Results, became testresults.Change) {
	if transcript.Deciding(row.Runs).State != "green" {
		all := failing(tests, became)
		row.Failing = all[:min(len(all), mostFailing)]
		row.FailingMore = tests.More + len(all) - len(row.Failing)
	}
	c.redact(row)
}

// redact removes the secrets that can be read only now: the log has what steers a
// terminal between their characters.
func (c Checks) redact(row *transcript.VerifyRow) {
	row.Tail = c.Record.Redact(row.Tail)
	for i := range row.Failing {
		t := &row.Failing[i]
		t.Name, t.File, t.Message = c.Record.Redact(t.Name), c.Record.Redact(t.File), c.Record.Redact(t.Message)
	}
	for i := range row.Mended {
		row.Mended[i] = c.Record.Redact(row.Mended[i])
	}
}

// testsBefore is what a row told of the tests on the base.
func testsBefore(row transcript.VerifyRow) testresults.Before {
	before := testresults.Before{Green: row.Before == "green", Complete: !row.BeforePartial}
	for _, t := range row.Failing {
		if !t.New {
			before.Failing = append(before.Failing, t.Name)
		}
	}
	before.Failing = append(before.Failing, row.Mended...)
	return before
}

const (
	// mostFailing is how many failing tests a row names.
	mostFailing = 500
	// mostMessages is how many of them say why.
	mostMessages = 50
)

// failing are the tests that fail, the new ones first.
func failing(tests *testresults.Results, change testresults.Change) []transcript.FailingTest {
	fresh := map[string]bool{}
	for _, name := range change.New {
		fresh[name] = true
	}
	var all []transcript.FailingTest
	for _, isNew := range []bool{true, false} {
		for _, t := range tests.Failing {
			if fresh[t.Name] != isNew {
				continue
			}
			told := transcript.FailingTest{Name: t.Name, File: t.File, Line: t.Line, Message: t.Message, New: isNew}
			if len(all) >= mostMessages {
				told.Message = ""
			}
			all = append(all, told)
		}
	}
	return all
}

// readingTests is how long it may take to read what an output says of tests.
const readingTests = time.Minute

// tests are what a run of a check says of tests: in the files that it wrote, else in its
// output. What can't be read is a warning, since it decides no exit status.
func (c Checks) tests(ctx context.Context, check job.VerifyCheck, log string) (*testresults.Results, error) {
	if told := c.reported(check, log); told != nil {
		return told, nil
	}
	output, err := c.Record.Open(log)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", log, err)
	}
	defer output.Close()
	reading, cancel := context.WithTimeoutCause(ctx, readingTests, fmt.Errorf("that takes longer than %s", readingTests))
	defer cancel()
	told, err := testresults.Read(reading, output, c.matchers(check))
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		c.Record.Warn("test_results", "What the output of %s says of tests can't be read: %v.", check.Name, err)
		return &testresults.Results{}, nil
	}
	return told, nil
}

// matchers are the problem matchers of a check. Those that can't be read are a warning,
// since they decide nothing.
func (c Checks) matchers(check job.VerifyCheck) []testresults.Matcher {
	if check.ProblemMatcher == "" {
		return nil
	}
	raw, err := c.Workspace.Checkout().ReadBase(check.ProblemMatcher, testresults.MaxMatchers)
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.New("there is no such file in the base commit")
	}
	var all []testresults.Matcher
	if err == nil {
		all, err = testresults.ParseMatchers(raw)
	}
	if err != nil {
		c.Record.Warn("problem_matcher", "The problem matchers of %s in %s can't be read: %v.", check.Name, check.ProblemMatcher, err)
	}
	return all
}

// tail is what people are shown of the log of a command that failed, where its file is
// not at hand; empty for one that is green.
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
