package verify

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// inShort are the rows of a table in short: name, before, after, whether it passed and why
// it was not run.
func inShort(rows []transcript.VerifyRow) (all []string) {
	for _, row := range rows {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s: %s %s %t %s", row.Name, row.Before, row.After, row.Passed, row.NotRun)))
	}
	return all
}

func TestRunsChecksForChangedPaths(t *testing.T) {
	checks, baseline, change := worked(t,
		job.VerifyCheck{Name: "docs", Run: "false", Must: "pass", When: []string{"docs/**"}},
		job.VerifyCheck{Name: "code", Run: "false", Must: "no_worse", When: []string{"docs/**", "TRACKED"}})
	if diff := cmp.Diff([]string{"docs:   false when", "code:   false when"}, inShort(baseline.Rows)); diff != "" {
		t.Error(diff)
	}
	table, err := checks.VerifyChange(t.Context(), 1, change, baseline.Rows)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"docs:   true when", "code: red red true"}, inShort(table.Rows)); diff != "" {
		t.Error(diff)
	}
	if !checks.Record.Has("outputs/base-1-2-code.log") || baseline.Rows[1].Before != "red" {
		t.Error("its baseline was not taken late, or is not among the rows")
	}
	again, err := checks.VerifyChange(t.Context(), 2, change, baseline.Rows)
	if err != nil || checks.Record.Has("outputs/base-2-2-code.log") {
		t.Errorf("it was taken twice: %v, %v", inShort(again.Rows), err)
	}
}

func TestFailureStopsAllChecks(t *testing.T) {
	checks, _, change := worked(t, job.VerifyCheck{Name: "a", Run: "true"}, job.VerifyCheck{Name: "b", Run: "true"}, job.VerifyCheck{Name: "c", Run: "true"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := checks.runOn(ctx, suiteOf(1, change.Base, change.Tree), onlyApplying([]bool{true, true, true})); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
