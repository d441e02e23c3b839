package publish

import (
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// Outcome returns the outcome of a run with a change, also if not published. stopped is the limit that
// ended the work, or nil. branch is the task's. where names the checkout for a person.
func (p *Publication) Outcome(rec *record.Record, stopped *outcome.Stop, branch, where string) *outcome.Stop {
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
	case p.alreadyPublished():
		return outcome.Stopf(outcome.NoChanges, "already_published",
			"Branch %s already has this change (commit %s); nothing was pushed.", branch, gitops.Short(p.Commit))
	}
	return outcome.Stopf(outcome.Changed, p.reason(), "%s", p.Sentence(where))
}

// WithoutChange returns the end of a run without anything to publish. dropped are protected files that
// the agent changed, output is the file with its object.
func (p *Publication) WithoutChange(t *intake.Task, j *job.Job, dropped []string, output string) *outcome.Stop {
	stop := outcome.Stopf(outcome.NoChanges, "nothing_to_do", "The agent finished without a change; its last message says why.")
	switch {
	case p.InBase:
		stop = outcome.Stopf(outcome.NoChanges, "already_in_base", "%s already has this change, since %s.", p.Base.Branch, gitops.Short(p.Base.SHA))
	case len(dropped) > 0:
		stop = outcome.Stopf(outcome.NoChanges, "only_protected",
			"The agent changed only protected files (%s), which policy.change.protected leaves out; to allow them, change policy.protect.", markdown.SomeFiles(dropped))
	case t.Subject != nil:
		return outcome.Stopf(outcome.NoChanges, "answered", "The agent changed nothing; what it found is in %s, and was not published (--publish none).", output)
	case j.Task.Expects == "answer":
		return outcome.Stopf(outcome.NoChanges, "answered", "The agent answered and changed nothing; its answer is the summary.")
	}
	stop.Message += p.OpenSentence()
	return stop
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
		red = append(red, fmt.Sprintf("%s is %s (%swas %s, %s)", row.Name, row.After, tests, row.Before, rec.DescribeLogPlace(row.Log)))
	}
	if len(red) == 0 {
		return ""
	}
	return fmt.Sprintf("The change does not pass: %s.", strings.Join(red, "; "))
}
