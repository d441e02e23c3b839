package publish

import (
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

// End returns the outcome of a run with a change, also if not published. stopped is the limit that
// ended the work, or nil. branch is the task's. where names the checkout for a person.
func (p *Publication) End(rec *record.Record, stopped *outcome.Stop, branch, where string) *outcome.Stop {
	committed := ""
	if p.Commit != "" {
		committed = " " + p.Sentence(where)
	}
	red := p.redChecks(rec)
	switch {
	case stopped != nil:
		stop := *stopped
		if committed != "" && red != "" {
			stop.Message += " " + red
		}
		stop.Message += committed
		return &stop
	case !p.Table.Passed:
		return outcome.Stopf(outcome.VerifyFailed, "red", "%s", red+committed)
	case p.HeldAlready():
		return outcome.Stopf(outcome.NoChanges, "already_published",
			"Branch %s already has this change (commit %s); nothing was pushed.", branch, gitops.Short(p.Commit))
	}
	return outcome.Stopf(outcome.Changed, p.Reason(), "%s", p.Sentence(where))
}

// redChecks returns a sentence with the failed checks and their logs, or "".
func (p *Publication) redChecks(rec *record.Record) string {
	var red []string
	for _, row := range p.Table.Rows {
		if row.Passed {
			continue
		}
		tests := row.Tests()
		if tests != "" {
			tests += ", "
		}
		red = append(red, fmt.Sprintf("%s is %s (%swas %s, %s)", row.Name, row.After, tests, row.Before, rec.Whereabouts(row.Log)))
	}
	if len(red) == 0 {
		return ""
	}
	return fmt.Sprintf("The change does not pass: %s.", strings.Join(red, "; "))
}
