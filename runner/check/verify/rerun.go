package verify

import (
	"cmp"
	"context"
	"fmt"

	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// result is a check's result on a tree.
type result struct {
	state   string // green, red, timeout or flaky; empty if it did not run
	notRun  string // why it did not run
	fromRun string // the earlier run whose cached result this is, or ""
	runs    []transcript.CheckRun
}

// runWithReruns runs a check. While it is red, it repeats the check on the same tree, as often as
// the job permits. It does not repeat a timeout.
//
// The baseline's caches and leftovers may break a check that cannot run twice in one place. Until the check
// was green with them once, rerunWithoutCaches decides about a red result.
func (c Checks) runWithReruns(ctx context.Context, s suite, i int) (result, error) {
	var r result
	caches := c.cachesOf(s, i)
	for again := 0; ; again++ {
		state, err := c.runOnce(ctx, s, i, caches, &r)
		cachesUnproven := caches != "" && !c.Record.Has(provenFile(caches))
		switch {
		case err != nil:
			return r, err
		case cachesUnproven && state == "green":
			proven, err := c.Record.Create(provenFile(caches))
			if err == nil {
				err = proven.Close()
			}
			return r, err
		case cachesUnproven && state == "red":
			return c.rerunWithoutCaches(ctx, s, i, caches, r)
		case state != "red" || again >= c.reruns(s, i):
			return r, nil
		}
	}
}

// reruns returns how often a red check is repeated: in a proof at most once, to recognise flaky tests.
func (c Checks) reruns(s suite, i int) int {
	reruns := c.Job.Verify[i].Rerun
	if s.isProof {
		reruns = min(reruns, 1)
	}
	return reruns
}

// rerunWithoutCaches repeats a check that was red with the baseline's caches, now without them. It stops
// if the check is not red or no reruns are left. If the first rerun is green, blameLeftovers
// decides between bad caches and a flaky check.
func (c Checks) rerunWithoutCaches(ctx context.Context, s suite, i int, caches string, r result) (result, error) {
	for {
		state, err := c.runOnce(ctx, s, i, "", &r)
		switch {
		case err != nil:
			return r, err
		case state == "green" && len(r.runs) == 2: // the first run was with the caches, this is the first without
			return c.blameLeftovers(ctx, s, i, caches, r)
		case state != "red" || len(r.runs) > c.reruns(s, i):
			return r, nil
		}
	}
}

// blameLeftovers runs a check once more with the baseline's leftovers, then without. If it is red
// and green again, the leftovers are to blame and are dropped. Otherwise the result follows from
// all runs; usually the check is flaky.
func (c Checks) blameLeftovers(ctx context.Context, s suite, i int, caches string, r result) (result, error) {
	all := r
	if state, err := c.runOnce(ctx, s, i, caches, &all); err != nil || state == "green" {
		return all, err
	}
	if state, err := c.runOnce(ctx, s, i, "", &all); err != nil || state != "green" {
		return all, err
	}
	c.Record.Warn("caches_dropped", "%s fails with the caches and ignored files of its baseline run, and passes without them. From here on it starts without them.", c.Job.Verify[i].Name)
	r.runs = r.runs[1:]
	r.state = transcript.CheckState(r.runs)
	return r, c.Sandboxes.DropCaches(caches)
}

// runOnce runs a check, adds the run to r and returns its state. caches are the baseline's, or "" for setup's.
func (c Checks) runOnce(ctx context.Context, s suite, i int, caches string, r *result) (state string, err error) {
	log := record.LogName(s.kind+rerunName(len(r.runs)), i+1, c.Job.Verify[i].Name)
	script := c.scriptFor(s, i, log)
	script.Place.Caches = caches
	ran, err := c.runCheck(ctx, s, script, i)
	if err != nil {
		return "", err
	}
	r.runs = append(r.runs, transcript.CheckRun{State: ran.Color(), ExitCode: ran.ExitCode, Seconds: ran.Seconds, Log: log})
	r.state = transcript.CheckState(r.runs)
	return ran.Color(), nil
}

// rerunName returns the part of a log's name that distinguishes reruns. It is "" for the first run.
func rerunName(again int) string {
	switch again {
	case 0:
		return ""
	case 1:
		return "-rerun"
	}
	return fmt.Sprintf("-rerun%d", again)
}

// newRow returns the table's row for a check, without results.
func (c Checks) newRow(i int) transcript.VerifyRow {
	check := c.Job.Verify[i]
	row := transcript.VerifyRow{Name: check.Name, Run: check.Run, Must: check.Must}
	if check.Flaky == "accept" {
		row.Flaky = check.Flaky
	}
	return row
}

// Passes reports whether a check's result meets the job's demand.
func Passes(row transcript.VerifyRow) bool {
	if transcript.CountsAsGreen(row.After, row.Flaky) || row.NotRun == transcript.NotConcerned {
		return true
	}
	wasGreen := transcript.CountsAsGreen(row.Before, row.Flaky)
	return row.Must == "no_worse" && !wasGreen && row.Worse == ""
}

// describeState returns a check's state in words for the agent.
func describeState(state string) string {
	if state == transcript.FlakyState {
		return "flaky: red, and green when it ran again on the same files"
	}
	return cmp.Or(state, "not run")
}
