package transcript

import "strings"

// Flaky is the state of a check with different results on one tree.
const Flaky = "flaky"

// NotConcerned is why a check was not run: the change touches no path of its verify[].when.
const NotConcerned = "when"

// CountsAsGreen reports whether a state counts as green under the job's setting for flaky.
func CountsAsGreen(state, flaky string) bool {
	return state == "green" || state == Flaky && flaky == "accept"
}

// CheckRun is one run of a check on a tree.
type CheckRun struct {
	State    string  `json:"state"` // green, red, timeout
	ExitCode int     `json:"exit_code"`
	Seconds  float64 `json:"seconds"`
	Log      string  `json:"log"` // below the run directory
}

// StateOf combines the runs of a check on one tree: green or red if all agree, flaky if they
// differ, timeout if the last one timed out.
func StateOf(runs []CheckRun) string {
	if len(runs) == 0 {
		return ""
	}
	last := runs[len(runs)-1].State
	if len(runs) > 1 && last == "green" {
		return Flaky
	}
	return last
}

// DecidingRun returns the run to judge and show: the first with the common result, or of a flaky check
// the red one. It is zero without any.
func DecidingRun(runs []CheckRun) (run CheckRun) {
	state := StateOf(runs)
	for _, run := range runs {
		if run.State == state {
			return run
		}
	}
	if len(runs) > 0 {
		run = runs[0]
	}
	return run
}

// Origin describes the run of a cached baseline, as the end of its state, or returns "".
func (r VerifyRow) Origin() string {
	if r.From == "" {
		return ""
	}
	return " (from run " + r.From + ")"
}

// TotalSeconds is how long all runs of the check took on the tree of this table.
func (r VerifyRow) TotalSeconds() float64 {
	if len(r.Runs) == 0 {
		return r.Seconds
	}
	var seconds float64
	for _, run := range r.Runs {
		seconds += run.Seconds
	}
	return seconds
}

// StateWithRuns returns a state with the number of its runs, if there were several.
func StateWithRuns(state string, runs []CheckRun) string {
	if len(runs) < 2 {
		return state
	}
	var states []string
	for _, r := range runs {
		states = append(states, r.State)
	}
	return state + " (" + strings.Join(states, ", then ") + ")"
}
