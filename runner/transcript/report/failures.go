package report

import (
	"fmt"
)

// failure is the end of what a command that failed printed.
type failure struct{ Name, End, Tail string }

// tailBytes is the most of one such end that the overview shows; the timeline may show
// more.
const tailBytes = 8 << 10

// Failures are the checks that did not come out as they must.
func (o *overview) Failures() []failure {
	var all []failure
	for _, row := range o.Checks() {
		if !row.Passed && row.After != "" && row.Tail != "" {
			all = append(all, failure{field(row.Name), field(row.After), shownText(row.Tail, tailBytes)})
		}
	}
	return all
}

func (o *overview) SetupFailures() []failure {
	var all []failure
	for _, step := range o.Setup() {
		if step.Tail != "" {
			all = append(all, failure{field(step.Name), fmt.Sprintf("exit %d", step.ExitCode), shownText(step.Tail, tailBytes)})
		}
	}
	return all
}
