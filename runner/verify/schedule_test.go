package verify

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/quick"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// inShort are the rows of a table in short: name, before, after, whether it passed and why
// it was not run.
func inShort(rows []transcript.VerifyRow) (all []string) {
	for _, row := range rows {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s: %s %s %t %s", row.Name, row.Before, row.After, row.Passed, row.NotRun)))
	}
	return all
}

func TestWhatChecksNeed(t *testing.T) {
	checks, baseline, change := worked(t,
		job.VerifyCheck{Name: "late", Run: "true", Must: "pass", Needs: []string{"broken"}},
		job.VerifyCheck{Name: "later", Run: "true", Must: "pass", Needs: []string{"late"}},
		job.VerifyCheck{Name: "broken", Run: "! grep change tracked", Must: "pass"},
		job.VerifyCheck{Name: "mended", Run: "grep change tracked", Must: "pass"},
		job.VerifyCheck{Name: "after", Run: "grep change tracked", Must: "pass", Needs: []string{"mended"}},
		job.VerifyCheck{Name: "red", Run: "false", Must: "no_worse"},
		job.VerifyCheck{Name: "beside", Run: "true", Must: "no_worse", Needs: []string{"red"}})
	if diff := cmp.Diff([]string{
		"late: green  false", "later: green  false", "broken: green  false", "mended: red  false", "after:   false needs", "red: red  false", "beside:   false needs",
	}, inShort(baseline.Rows)); diff != "" {
		t.Error(diff)
	}
	table, err := checks.Change(t.Context(), 1, change, baseline.Rows)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{
		"late: green  false needs", "later: green  false needs", "broken: green red false", "mended: red green true", "after:  green true", "red: red red true", "beside:   true needs",
	}, inShort(table.Rows)); diff != "" {
		t.Error(diff)
	}
	words, err := checks.Words(table, "")
	if err != nil || !strings.Contains(words, "## late: not run, as what it needs is not green\n") {
		t.Errorf("%v: %s", err, words)
	}
}

func TestChecksForPathsOfTheChange(t *testing.T) {
	checks, baseline, change := worked(t,
		job.VerifyCheck{Name: "docs", Run: "false", Must: "pass", When: []string{"docs/**"}},
		job.VerifyCheck{Name: "needs docs", Run: "true", Must: "pass", Needs: []string{"docs"}},
		job.VerifyCheck{Name: "code", Run: "false", Must: "no_worse", When: []string{"docs/**", "TRACKED"}})
	if diff := cmp.Diff([]string{"docs:   false when", "needs docs:   false when", "code:   false when"}, inShort(baseline.Rows)); diff != "" {
		t.Error(diff)
	}
	table, err := checks.Change(t.Context(), 1, change, baseline.Rows)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"docs:   true when", "needs docs: green green true", "code: red red true"}, inShort(table.Rows)); diff != "" {
		t.Error(diff)
	}
	if !checks.Record.Has("outputs/base-1-3-code.log") || baseline.Rows[2].Before != "red" {
		t.Error("its baseline was not taken late, or is not among the rows")
	}
	again, err := checks.Change(t.Context(), 2, change, baseline.Rows)
	if err != nil || checks.Record.Has("outputs/base-2-3-code.log") {
		t.Errorf("it was taken twice: %v, %v", inShort(again.Rows), err)
	}
}

func TestAFailureEndsAllThatRun(t *testing.T) {
	checks, _, change := worked(t, job.VerifyCheck{Name: "a", Run: "true"}, job.VerifyCheck{Name: "b", Run: "true"}, job.VerifyCheck{Name: "c", Run: "true"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := checks.runOn(ctx, suiteOf(1, change.Base, change.Tree), onlyConcerned([]bool{true, true, true})); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// Each check starts once, after all that it needs, whatever needs what.
func TestNoCheckStartsBeforeWhatItNeeds(t *testing.T) {
	property := func(edges []uint16, green uint8) bool {
		const n = 8
		checks := Checks{Job: &job.Job{}}
		for i := range n {
			checks.Job.Verify = append(checks.Job.Verify, job.VerifyCheck{Name: fmt.Sprint(i)})
		}
		for _, e := range edges {
			from, to := int(e)%n, int(e>>8)%n
			if from > to { // else there would be circles
				checks.Job.Verify[from].Needs = append(checks.Job.Verify[from].Needs, fmt.Sprint(to))
			}
		}
		r := round{checks: checks, results: make([]result, n), stage: make([]stage, n)}
		for range n {
			for i := range n {
				if r.stage[i] != waiting || !r.settled(i) {
					continue
				}
				for _, need := range r.checks.needs(i) {
					if r.stage[need] != over {
						return false
					}
				}
				state := "red"
				if green>>i&1 == 1 && !r.unmet(i) {
					state = "green"
				}
				r.results[i], r.stage[i] = result{state: state}, over
				break
			}
		}
		for i := range n {
			if r.stage[i] != over {
				return false
			}
		}
		return true
	}
	if err := quick.Check(property, nil); err != nil {
		t.Error(err)
	}
}
