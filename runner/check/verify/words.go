package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// maxAgentTests limits the failing tests of a check that the agent is shown.
const maxAgentTests = 20

// describeTests describes a check's failing tests to the agent, or returns "".
func describeTests(row transcript.VerifyRow) string {
	if row.DescribeTests() == "" {
		return ""
	}
	var s strings.Builder
	fmt.Fprintf(&s, "tests, from the output: %s\n", row.DescribeTests())
	if slices.ContainsFunc(row.Failing, func(t transcript.FailingTest) bool { return t.DescribeRuns() != "" }) {
		s.WriteString("It ran several times on the same files, and failed for different reasons.\n")
	}
	for _, t := range row.Failing[:min(len(row.Failing), maxAgentTests)] {
		words := []string{t.Name}
		if place := t.Place(); place != "" {
			words = append(words, "at "+place)
		}
		if t.Message != "" {
			words = append(words, "says: "+t.Message)
		}
		kind := "fails"
		if t.New {
			kind = "new failure"
		}
		if only := t.DescribeRuns(); only != "" {
			kind += " " + only
		}
		fmt.Fprintf(&s, "- %s: %s\n", kind, strings.Join(words, " "))
	}
	if more := len(row.Failing) + row.FailingMore - maxAgentTests; more > 0 {
		fmt.Fprintf(&s, "- and %d more\n", more)
	}
	return s.String()
}
