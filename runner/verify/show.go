package verify

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/verify/testresults"
)

// show has a row tell of what its check says now, where it told of what it said before.
func (c Checks) show(row *transcript.VerifyRow, i int, r result) (err error) {
	before := testsBefore(*row)
	r.put(row)
	row.Tail, row.Failing, row.FailingMore, row.Mended = "", nil, 0, nil
	if len(r.runs) == 0 {
		return nil
	}
	state := transcript.Deciding(r.runs).State
	if row.Tail, err = c.tail(state, row.Log); err != nil {
		return err
	}
	tests, err := c.tests(c.Job.Verify[i], row.Log)
	if err != nil {
		return err
	}
	green := state == "green"
	change := testresults.Compare(before, tests, green)
	row.Mended = change.Mended
	if !green {
		all := failing(tests, change)
		row.Failing = all[:min(len(all), mostFailing)]
		row.FailingMore = tests.More + len(all) - len(row.Failing)
	}
	c.redact(row)
	return nil
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
	before := testresults.Before{Green: row.Before == "green", Complete: row.FailingMore == 0}
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

// tests are what a run of a check says of tests: in the files that it wrote, else in its
// output. What can't be read is a warning, since it decides no exit status.
func (c Checks) tests(check job.VerifyCheck, log string) (*testresults.Results, error) {
	if told := c.reported(check, log); told != nil {
		return told, nil
	}
	output, err := c.Record.Open(log)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", log, err)
	}
	defer output.Close()
	told, err := testresults.Read(output, c.matchers(check))
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
