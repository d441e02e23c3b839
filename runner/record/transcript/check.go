package transcript

import "strings"

// Flaky is the state of a check that was red and green on one tree.
const Flaky = "flaky"

// NotConcerned is why a check was not run: the change touches no path of its verify[].when.
const NotConcerned = "when"

// Good says whether a state of a check counts as green, by what its job has of flaky.
func Good(state, flaky string) bool {
	return state == "green" || state == Flaky && flaky == "accept"
}

// CheckRun is one run of a check on a tree.
type CheckRun struct {
	State    string  `json:"state"` // green, red, timeout
	ExitCode int     `json:"exit_code"`
	Seconds  float64 `json:"seconds"`
	Log      string  `json:"log"` // below the run directory
}

// StateOf is what the runs of a check on one tree say of it: green or red where all do,
// flaky where they differ, and timeout where the last one took too long.
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

// Deciding is the run by which a check is judged and shown: the first that came out as
// all of them say, and of a flaky check the red one. It is zero where there is none.
func Deciding(runs []CheckRun) (run CheckRun) {
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

// Origin says which run the baseline of a check is from, for the end of its state; empty
// for this one.
func (r VerifyRow) Origin() string {
	if r.From == "" {
		return ""
	}
	return " (from run " + r.From + ")"
}

// Took is how long all runs of the check took on the tree of this table.
func (r VerifyRow) Took() float64 {
	if len(r.Runs) == 0 {
		return r.Seconds
	}
	var seconds float64
	for _, run := range r.Runs {
		seconds += run.Seconds
	}
	return seconds
}

// Told is a state with the runs that it comes from, where there was more than one.
func Told(state string, runs []CheckRun) string {
	if len(runs) < 2 {
		return state
	}
	var states []string
	for _, r := range runs {
		states = append(states, r.State)
	}
	return state + " (" + strings.Join(states, ", then ") + ")"
}
