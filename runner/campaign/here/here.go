// Package here owns running the targets of a campaign on this machine: each as a process of
// agent-ci with a run directory of its own, and how processes that an earlier starter left are taken
// over. It refuses to know what a run does; what may start says the ledger.
package here

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/record"
)

// Options say what is run, and by what.
type Options struct {
	Ledger   *campaign.Ledger
	Campaign *job.Campaign
	Plan     *campaign.Plan
	Folder   string // of the campaign, in the ledger's
	Program  string // agent-ci
	Environ  []string
	Args     []string // further flags of each run
	Now      func() time.Time
	// Tell is told of each target that starts or ends. It is called by one goroutine at a time.
	Tell func(Step)
	// Refresh notes what became of the campaign's pull requests; nil where nobody is to be asked.
	Refresh func(context.Context) error
	// Existing gives the addresses of open pull requests that targets have already, by their keys; nil
	// where that is no reason to leave a target out.
	Existing func(context.Context, []campaign.Target) (map[string]string, error)
	// Checkouts are what the targets are run in; nil where each run makes its own.
	Checkouts *Checkouts
	// Wait says to wait for what the time alone changes: a window, an hour, a day.
	Wait bool
	// Spare is how much longer than its job lets it a run may take, before it is taken for hung.
	Spare time.Duration
	// Farewell is how long a process has to end in order, before it is killed.
	Farewell time.Duration
	// Said is where runs tell what they do; nil for their logs.
	Said io.Writer
	// Outages says to go on with a run that an earlier start left ended by an outage of the model or of
	// the forge.
	Outages bool
	// Resumable says why the run in a directory cannot go on; nil where it can.
	Resumable func(*record.Directory) error
	// Models are those that runs may ask. Without them a lost answer counts as the dearest request.
	Models []campaign.Model
}

// Step is a target that started or ended.
type Step struct {
	Target campaign.Target
	Claim  campaign.Claimed
	Report *campaign.Report // nil where it started
	Passed bool             // it needed no run
	Taken  bool             // a run that an earlier starter left is gone on with
	Left   bool             // it was broken off, and goes on with the next start
}

// Run runs what may start until nothing may any more, and says why the rest waits. When ctx ends,
// runs are told to end and are waited for; their claims stay, and the next Run goes on with them.
func Run(ctx context.Context, o Options) (campaign.Wait, error) {
	r := &wave{Options: o, ended: make(chan end)}
	if o.Refresh != nil {
		if err := o.Refresh(ctx); err != nil {
			return campaign.Wait{}, fmt.Errorf("ask for the states of pull requests: %w", err)
		}
	}
	for _, claimed := range o.Ledger.Of(o.Campaign.Name).Unsettled() {
		if claimed.Host != "" { // its run is not here
			continue
		}
		target, known := o.Plan.Find(claimed.Target)
		if !known {
			target = campaign.Target{Key: claimed.Target}
		}
		r.start(ctx, target, claimed, true)
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
func (r *wave) await(ctx context.Context, wait campaign.Wait, over bool) error {
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

// wave is what runs now.
type wave struct {
	Options
	running int
	ended   chan end
}

// end is the end of a target's process.
type end struct {
	target  campaign.Target
	claimed campaign.Claimed
	report  campaign.Report
	settled bool
}

// startMore starts what may start.
func (r *wave) startMore(ctx context.Context) (campaign.Wait, error) {
	next, wait, err := r.Ledger.Choose(ctx, campaign.Choice{
		Campaign: r.Campaign, Plan: r.Plan, Now: r.Now, Most: r.Ledger.Of(r.Campaign.Name).Room(r.Campaign), Existing: r.Existing,
		Passed: func(t campaign.Target, report *campaign.Report) {
			r.Tell(Step{Target: t, Report: report, Passed: true})
		},
	})
	if err != nil {
		return wait, err
	}
	claimed, err := r.Ledger.Claim(r.Campaign, r.Plan, next)
	if err != nil {
		return wait, err
	}
	for i, c := range claimed {
		r.start(ctx, next[i], c, false)
	}
	return wait, nil
}

func (r *wave) start(ctx context.Context, t campaign.Target, c campaign.Claimed, taken bool) {
	r.running++
	r.Tell(Step{Target: t, Claim: c, Taken: taken})
	since := r.Ledger.Of(r.Campaign.Name).Entry(c.Target).Since
	go func() {
		report, settled := Work(ctx, r.Options, t, c, since)
		r.ended <- end{t, c, report, settled}
	}()
}

// take books an end.
func (r *wave) take(e end) error {
	r.running--
	step := Step{Target: e.target, Claim: e.claimed, Report: &e.report, Left: !e.settled}
	var err error
	if e.settled {
		err = r.Ledger.Settle(r.Campaign, e.report)
	}
	r.Tell(step)
	return err
}
