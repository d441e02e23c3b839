package runner

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/setup/start"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// runner has what all stages use. Stages register results in end, which also closes what they opened.
type runner struct {
	*start.Start
	forceStop context.Context
	end       *ending
}

// newRunner returns a runner for one command. id is the new run's id, or "" for a run that exists.
func newRunner(id string, req start.Request, given settings.Inputs, s Surroundings) *runner {
	r := &runner{forceStop: s.ForceStop, Start: start.New(id, req, given, s)}
	r.end = &ending{Found: &r.Found}
	return r
}

// runWithTimeLimit runs work with a context that ends at limits.time, counted from the run's start. untimed
// is the context without that limit. Every error becomes an *outcome.Stop.
func (r *runner) runWithTimeLimit(untimed context.Context, l job.Limits, work func(ctx context.Context) error) error {
	ctx, cancel := untimed, func() {}
	if limit := time.Duration(l.Time); limit > 0 {
		stop := outcome.Stopf(outcome.BudgetExceeded, settings.TimeReason,
			"The run was stopped after %s; raise limits.time or give a smaller task.", limit)
		ctx, cancel = context.WithDeadlineCause(untimed, r.Began.Add(limit), stop)
	}
	defer cancel()
	if err := work(ctx); err != nil {
		return outcome.ForError(ctx, err)
	}
	return nil
}

// graceTime is the least time for a stage that saves results after limits.time: taking the change, judging, publishing.
const graceTime = time.Minute

// runWithGrace runs work, which saves results, with at least graceTime even if limits.time is over: the
// deadline is that of ctx or graceTime from now, whichever is later. Only the end of untimed stops it
// earlier. A ctx without a deadline is used unchanged.
func runWithGrace(ctx, untimed context.Context, work func(context.Context) error) error {
	end, limited := ctx.Deadline()
	if !limited {
		return work(ctx)
	}
	if earliest := time.Now().Add(graceTime); end.Before(earliest) {
		end = earliest
	}
	late, cancel := context.WithDeadline(untimed, end)
	defer cancel()
	return work(late)
}

// recoverPanic converts a panic to the outcome internal_error, so a result is written.
func recoverPanic(ctx context.Context, work func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = outcome.Stopf(outcome.InternalError, "panic",
				"agent-ci itself failed (%v); please report this with %s.", p, record.TranscriptFile).Because(fmt.Errorf("%s", debug.Stack()))
		}
	}()
	return work(ctx)
}
