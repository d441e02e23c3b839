// Package here owns working on runs of a campaign on this machine: each is a process of agent-ci with a
// run directory of its own, which a later start resumes if it was killed. It refuses to know what a run
// does; the ledger decides what may start.
package here

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/agent-ci/agent-ci/runner/campaign/spec"

	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/publish/progress"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// Options say what is run, and by what.
type Options struct {
	Campaign *spec.Campaign
	Template string // of the plan
	Folder   string // of run directories
	Program  string // agent-ci
	Environ  []string
	Args     []string // further flags of each run
	Now      func() time.Time
	// Log gets a line for each target that starts or ends.
	Log io.Writer
	// Output gets what runs print; nil for their logs.
	Output io.Writer
	// CheckOut makes the checkout of a target; nil if each run clones its repository.
	CheckOut func(ctx context.Context, t campaign.Target, dir string) error
	// Discard removes the clones of runs that are settled: their changes are on the forge.
	Discard bool
	// Spare is how much longer than its job allows a run may take before it is killed as hung.
	Spare time.Duration
	// Farewell is how long a process has to exit after SIGTERM.
	Farewell time.Duration
	// Resumable says why the run in a directory cannot resume; nil if it can.
	Resumable func(*record.Directory) error
	// Models are those that runs may ask. They price answers that were lost.
	Models []campaign.Model

	// The rest is for Run alone.

	// Ledger books the runs; nil on another host.
	Ledger *campaign.Ledger
	Plan   *campaign.Plan
	// Refresh notes the states of the campaign's pull requests; nil for nothing to ask.
	Refresh func(context.Context) error
	// Existing is that of campaign.Choice.
	Existing func(context.Context, []campaign.Target) (map[string]string, error)
	// Wait waits for what the time alone changes: a window, an hour, a day.
	Wait bool
}

// Run runs what may start until nothing may any more, and says why the rest waits. When ctx ends,
// runs are told to end and are waited for; their claims stay, and the next Run resumes them.
func Run(ctx context.Context, o Options) (campaign.Wait, error) {
	r := &starter{Options: o, ended: make(chan end)}
	if o.Refresh != nil {
		if err := o.Refresh(ctx); err != nil {
			return campaign.Wait{}, fmt.Errorf("ask for the states of pull requests: %w", err)
		}
	}
	for _, claimed := range o.Ledger.Of(o.Campaign.Name).Unsettled() {
		if claimed.Host == "" {
			r.start(ctx, claimed, "goes on")
		}
	}
	wait, failed := campaign.Wait{}, error(nil)
	for {
		if ctx.Err() == nil && failed == nil {
			wait, failed = r.startMore(ctx)
		}
		over := ctx.Err() != nil || failed != nil || !o.Wait || wait.Until.IsZero()
		if r.running == 0 && over {
			return wait, errors.Join(failed, context.Cause(ctx))
		}
		failed = errors.Join(failed, r.await(ctx, wait, over))
	}
}

// await waits until something ends, or until the time lets more start, unless that is over.
func (r *starter) await(ctx context.Context, wait campaign.Wait, over bool) error {
	var due <-chan time.Time
	var cancelled <-chan struct{}
	if !over {
		timer := time.NewTimer(wait.Until.Sub(r.Now()))
		defer timer.Stop()
		due, cancelled = timer.C, ctx.Done()
	}
	select {
	case e := <-r.ended:
		return r.take(e)
	case <-due:
	case <-cancelled:
	}
	return nil
}

// starter knows the runs that work now.
type starter struct {
	Options
	running int
	ended   chan end
}

// end is the end of a run.
type end struct {
	claimed campaign.Claimed
	report  *campaign.Report
	settled bool
	err     error
}

// startMore starts what may start.
func (r *starter) startMore(ctx context.Context) (campaign.Wait, error) {
	next, wait, err := r.Ledger.Choose(ctx, campaign.Choice{
		Campaign: r.Campaign, Plan: r.Plan, Now: r.Now, Most: r.Ledger.Of(r.Campaign.Name).Room(r.Campaign), Existing: r.Existing,
		Passed: func(report campaign.Report) { Tell(r.Log, report) },
	})
	if err != nil {
		return wait, err
	}
	claimed, err := r.Ledger.Claim(r.Campaign, r.Plan, next, "")
	if err != nil {
		return wait, err
	}
	for _, c := range claimed {
		r.start(ctx, c, "starts")
	}
	return wait, nil
}

func (r *starter) start(ctx context.Context, c campaign.Claimed, how string) {
	r.running++
	fmt.Fprintln(r.Log, progress.Printable(c.Target.Key), how)
	since := r.Ledger.Of(r.Campaign.Name).Entry(c.Target.Key).Since
	go func() {
		report, settled, err := Work(ctx, r.Options, c, since)
		r.ended <- end{c, report, settled, err}
	}()
}

// take books an end.
func (r *starter) take(e end) error {
	r.running--
	if !e.settled {
		fmt.Fprintln(r.Log, progress.Printable(e.claimed.Target.Key), "was interrupted, and resumes with the next start")
		return e.err
	}
	_, err := r.Ledger.Settle(r.Campaign, *e.report)
	Tell(r.Log, *e.report)
	return errors.Join(err, e.err)
}

// Tell writes the line of a run that ended.
func Tell(to io.Writer, r campaign.Report) {
	line := r.Target + " " + r.Outcome + "/" + r.Reason
	if r.Message != "" {
		line += ": " + r.Message
	}
	fmt.Fprintln(to, progress.Printable(markdown.Cut(line, 500)))
}
