package transcript

import "strings"

// FlakyState is the state of a check with different results on one tree.
const FlakyState = "flaky"

// NotConcerned is the value of NotRun if the change touches no path of the check's verify[].when.
const NotConcerned = "when"

// CountsAsGreen reports whether a check in this state passes. flakySetting is the check's verify[].flaky:
// "accept" lets a flaky check pass.
func CountsAsGreen(state, flakySetting string) bool {
	return state == "green" || state == FlakyState && flakySetting == "accept"
}

// CheckRun is one run of a check on a tree.
type CheckRun struct {
	State    string  `json:"state"` // green, red, timeout
	ExitCode int     `json:"exit_code"`
	Seconds  float64 `json:"seconds"`
	Log      string  `json:"log"` // path in the run directory
}

// CheckState returns the state of a check after its runs on one tree, or "" without runs. The last run
// decides. If it is green after other runs, the check is flaky.
func CheckState(runs []CheckRun) string {
	if len(runs) == 0 {
		return ""
	}
	last := runs[len(runs)-1].State
	if len(runs) > 1 && last == "green" {
		return FlakyState
	}
	return last
}

// DecidingRun returns the run to judge and show. It is the first run with the state of the check,
// or for a flaky check the first run, which is red. It is zero without runs.
func DecidingRun(runs []CheckRun) CheckRun {
	state := CheckState(runs)
	for _, run := range runs {
		if run.State == state {
			return run
		}
	}
	if len(runs) == 0 {
		return CheckRun{}
	}
	return runs[0]
}

// DescribeOrigin returns the run that a cached baseline is from, as the end of a sentence about its state.
// It returns "" for other results.
func (r VerifyRow) DescribeOrigin() string {
	if r.CachedFrom == "" {
		return ""
	}
	return " (from run " + r.CachedFrom + ")"
}

// TotalSeconds returns how long all runs of the check took on the tree of this table.
func (r VerifyRow) TotalSeconds() (seconds float64) {
	if len(r.Runs) == 0 {
		return r.Seconds
	}
	for _, run := range r.Runs {
		seconds += run.Seconds
	}
	return seconds
}

// StateWithRuns returns a state. If there were several runs, it adds their states.
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
