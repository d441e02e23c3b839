// Package here runs a campaign on this machine: each run is an agent-ci process with its own run
// directory, resumed by a later start if killed. It does not know a run's work; the ledger decides
// about starts.
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

// Options configures the runs.
type Options struct {
	Campaign *spec.Campaign
	Template string // of the plan
	Folder   string // of run directories
	Program  string // agent-ci
	Environ  []string
	Args     []string // further flags of each run
	Now      func() time.Time
	// Log receives a line for each started or ended target.
	Log io.Writer
	// Output receives the runs' output; nil uses their logs.
	Output io.Writer
	// CheckOut makes the checkout of a target; nil if each run clones its repository.
	CheckOut func(ctx context.Context, t campaign.Target, dir string) error
	// Discard removes the clones of settled runs. Their changes are on the forge.
	Discard bool
	// Spare is how much longer than its job allows a run may take before it is killed as hung.
	Spare time.Duration
	// Farewell is how long a process has to exit after SIGTERM.
	Farewell time.Duration
	// Resumable says why the run in a directory cannot resume; nil if it can.
	Resumable func(*record.Directory) error
	// Models lists the runs' models, to price lost answers.
	Models []campaign.Model

	// The rest is for Run alone.

	// Ledger books the runs; nil on another host.
	Ledger *campaign.Ledger
	Plan   *campaign.Plan
	// Refresh updates the pull requests' states; may be nil.
	Refresh func(context.Context) error
	// Existing is campaign.Choice's.
	Existing func(context.Context, []campaign.Target) (map[string]string, error)
	// Wait waits for windows, hours and days.
	Wait bool
}

// Run runs targets until none may start, and returns the reason for the rest. At ctx's end it stops
// the runs and waits; their claims stay for the next Run.
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

// await waits for an end or, unless over, for the time to permit more starts.
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

// starter knows the current runs.
type starter struct {
	Options
	running int
	ended   chan end
}

type end struct {
	claimed campaign.Claimed
	report  *campaign.Report
	settled bool
	err     error
}

// startMore starts what may start.
func (r *starter) startMore(ctx context.Context) (campaign.Wait, error) {
	next, wait, err := r.Ledger.Choose(ctx, campaign.Choice{
		Campaign: r.Campaign, Plan: r.Plan, Now: r.Now, Most: r.Ledger.Of(r.Campaign.Name).FreeSlots(r.Campaign), Existing: r.Existing,
		Passed: func(report campaign.Report) { PrintReport(r.Log, report) },
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

func (r *starter) take(e end) error {
	r.running--
	if !e.settled {
		fmt.Fprintln(r.Log, progress.Printable(e.claimed.Target.Key), "was interrupted, and resumes with the next start")
		return e.err
	}
	_, err := r.Ledger.Settle(r.Campaign, *e.report)
	PrintReport(r.Log, *e.report)
	return errors.Join(err, e.err)
}

// PrintReport writes the line of an ended run.
func PrintReport(to io.Writer, r campaign.Report) {
	line := r.Target + " " + r.Outcome + "/" + r.Reason
	if r.Message != "" {
		line += ": " + r.Message
	}
	fmt.Fprintln(to, progress.Printable(markdown.Cut(line, 500)))
}
