package verify

import (
	"cmp"
	"context"
	"fmt"

	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// result is what a check says of a tree.
type result struct {
	state  string // green, red, timeout, flaky; empty where it was not run
	notRun string // why
	from   string // the run that found it, where that was an earlier one
	runs   []transcript.CheckRun
}

// put makes a row tell of a result.
func (r result) put(row *transcript.VerifyRow) {
	deciding := transcript.Deciding(r.runs)
	row.NotRun = r.notRun
	row.Runs, row.Seconds, row.Log = r.runs, deciding.Seconds, deciding.Log
}

// untilGreen runs a check, and again on the same tree while it is red and the job
// lets it. One that took too long has cost its time, and counts at once.
func (c Checks) untilGreen(ctx context.Context, s suite, i int) (result, error) {
	var r result
	for again := 0; ; again++ {
		log := record.LogName(s.kind+rerunName(again), i+1, c.Job.Verify[i].Name)
		ran, err := c.check(ctx, s, c.script(s, i, log), c.Job.Verify[i])
		if err != nil {
			return r, err
		}
		r.runs = append(r.runs, transcript.CheckRun{State: ran.Color(), ExitCode: ran.ExitCode, Seconds: ran.Seconds, Log: log})
		r.state = transcript.StateOf(r.runs)
		if r.state != "red" || again == c.Job.Verify[i].Rerun {
			return r, nil
		}
	}
}

// rerunName tells the logs of reruns from that of the first run.
func rerunName(again int) string {
	switch again {
	case 0:
		return ""
	case 1:
		return "-rerun"
	}
	return fmt.Sprintf("-rerun%d", again)
}

// newRow is the row of a check of which nothing is known yet.
func (c Checks) newRow(i int) transcript.VerifyRow {
	check := c.Job.Verify[i]
	row := transcript.VerifyRow{Name: check.Name, Run: check.Run, Must: check.Must}
	if check.Flaky == "accept" {
		row.Flaky = check.Flaky
	}
	return row
}

// Passes says whether a check came out as its job demands.
func Passes(row transcript.VerifyRow) bool {
	return transcript.Good(row.After, row.Flaky) || row.NotRun == transcript.NotConcerned || row.Must == "no_worse" && !transcript.Good(row.Before, row.Flaky) && row.Worse == ""
}

// stateInWords is a state for the agent.
func stateInWords(state string) string {
	if state == transcript.Flaky {
		return "flaky: red, and green when it ran again on the same files"
	}
	return cmp.Or(state, "not run")
}
