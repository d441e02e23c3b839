package report

import (
	"fmt"

	"github.com/agent-ci/agent-ci/runner/transcript"
)

// failure is the end of what a command that failed printed, with its place on the page.
type failure struct{ ID, Name, End, Tail string }

// failed says whether a check did not come out as it must, and printed something.
func failed(row transcript.VerifyRow) bool { return !row.Passed && row.After != "" && row.Tail != "" }

func outputID(n int) string { return fmt.Sprintf("output-%d", n+1) }

// Checks are the rows of the last verification, those that failed with links to their
// output.
func (o *overview) Checks() []check {
	if o.View.Verify == nil {
		return nil
	}
	var all []check
	for i, row := range shownOf(o.View.Verify.Rows) {
		one := check{VerifyRow: row}
		if failed(row) {
			one.Output = outputID(i)
		}
		all = append(all, one)
	}
	return all
}

// tailBytes is the most of one such end that the overview shows; the timeline may show
// more.
const tailBytes = 8 << 10

// Failures are the checks that did not come out as they must.
func (o *overview) Failures() []failure {
	var all []failure
	for _, row := range o.Checks() {
		if row.Output != "" {
			all = append(all, failure{row.Output, field(row.Name), field(row.After), shownText(row.Tail, tailBytes)})
		}
	}
	return all
}

func (o *overview) SetupFailures() []failure {
	var all []failure
	for _, step := range o.Setup() {
		if step.Tail != "" {
			all = append(all, failure{"", field(step.Name), fmt.Sprintf("exit %d", step.ExitCode), shownText(step.Tail, tailBytes)})
		}
	}
	return all
}

// tests are what the output of a check tells of its tests.
type tests struct {
	Name, Words string
	Failing     []transcript.FailingTest
	Mended      []string
	More        string
}

// Tests are those that fail, and those that the change fixed.
func (o *overview) Tests() []tests {
	var all []tests
	for _, row := range o.Checks() {
		if row.TestsAfter() != "" {
			all = append(all, tests{
				Name: field(row.Name), Words: row.TestsAfter(), Failing: shownOf(row.Failing), Mended: shownOf(row.Mended),
				More: moreRows("test", max(len(row.Failing)+row.FailingMore, len(row.Mended))),
			})
		}
	}
	return all
}
