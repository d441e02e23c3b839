// Package here runs a campaign on this machine. Each run is an agent-ci process with its own run
// directory. A later start resumes killed runs. The package does not know how a run works, and the
// ledger decides which targets start.
package here

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/campaign/pulls"
	"github.com/agent-ci/agent-ci/runner/campaign/spec"
	"github.com/agent-ci/agent-ci/runner/publish/progress"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// Options configures a run of a campaign on this machine, which may be a host without the ledger.
type Options struct {
	Campaign *spec.Campaign
	Template string // job digest of the plan
	Folder   string // folder for run directories
	Command
	Session string // scripted session that answers all runs; "" for the model
	Now     func() time.Time
	// Log receives a line for each started or ended target.
	Log io.Writer
	// Output receives the runs' error output. Nil sends it to the runs' logs.
	Output io.Writer
	// CheckOut makes the checkout of a target; nil if each run clones its repository.
	CheckOut func(ctx context.Context, t campaign.Target, dir string) error
	// OnForge means that the runs publish on the forge. The clone of a settled run is removed then, unless the run
	// may start again and can resume, which needs the clone.
	OnForge       bool
	MayStartAgain bool
	// TimeMargin is how long a run may exceed its job's time limits before it is killed as hung.
	TimeMargin time.Duration
	// ExitGrace is how long a process has to exit after SIGTERM.
	ExitGrace time.Duration
	// Resumable returns why the run in a directory cannot resume with a session, or nil if it can.
	Resumable func(dir *record.Directory, session string) error
	// Models lists the runs' models, to compute the cost of lost answers.
	Models []campaign.Model
}

// Command starts runs.
type Command struct {
	Program string // path of agent-ci
	Environ []string
	Args    []string // further flags of each new run
}

// Schedule is a plan with the ledger that books its runs.
type Schedule struct {
	Options
	Ledger *campaign.Ledger
	Plan   *campaign.Plan
	// Forge has the pull requests; nil if there are none.
	Forge pulls.Forge
	// Wait makes Run wait for the next window, hour or day, and for the end of an outage of the forge, instead of
	// returning.
	Wait bool
}

// Run runs targets until no further one may start. When ctx ends, it stops the runs and waits for them. Their
// claims stay open for the next Run.
func Run(ctx context.Context, s Schedule) error {
	r := &localRuns{Schedule: s, ended: make(chan runEnd)}
	if err := r.refreshPulls(ctx); err != nil {
		return err
	}
	for _, claimed := range s.Ledger.Of(s.Campaign.Name).Unsettled() {
		if claimed.Host == "" {
			r.startRun(ctx, claimed, "goes on")
		}
	}
	wait, firstErr := campaign.Wait{}, error(nil)
	for {
		if ctx.Err() == nil && firstErr == nil {
			wait, firstErr = r.startMore(ctx)
		}
		done := ctx.Err() != nil || firstErr != nil || !s.Wait || wait.Until.IsZero()
		if r.running == 0 && done {
			return errors.Join(firstErr, context.Cause(ctx))
		}
		firstErr = errors.Join(firstErr, r.awaitEnd(ctx, wait, done))
	}
}

// refreshPulls records the states of the campaign's pull requests. It waits for the end of an outage of the forge like
// startMore.
func (r *localRuns) refreshPulls(ctx context.Context) error {
	if r.Forge == nil {
		return nil
	}
	for {
		err := pulls.Refresh(ctx, r.Forge, r.Ledger, r.Campaign, r.Plan)
		until := r.retryTime(err)
		if until.IsZero() {
			return err
		}
		if err := cmp.Or(r.awaitEnd(ctx, campaign.Wait{Until: until}, false), context.Cause(ctx)); err != nil {
			return err
		}
	}
}

// awaitEnd waits until a run ends, and books its result. Unless done, it also returns when further targets
// may start or ctx ends.
func (r *localRuns) awaitEnd(ctx context.Context, wait campaign.Wait, done bool) error {
	var due <-chan time.Time // nil blocks for ever
	var cancelled <-chan struct{}
	if !done {
		timer := time.NewTimer(wait.Until.Sub(r.Now()))
		defer timer.Stop()
		due, cancelled = timer.C, ctx.Done()
	}
	select {
	case e := <-r.ended:
		return r.bookEnd(e)
	case <-due:
	case <-cancelled:
	}
	return nil
}

// localRuns is the state of Run: the number of running targets, and a channel with their ends.
type localRuns struct {
	Schedule
	running int
	ended   chan runEnd
	// outageBegan is when the forge first failed, or zero since it last answered.
	outageBegan time.Time
}

// runEnd is the result of Work for a claim.
type runEnd struct {
	claimed campaign.Claimed
	report  *campaign.Report
	settled bool
	err     error
}

// startMore starts the targets that may start now.
func (r *localRuns) startMore(ctx context.Context) (campaign.Wait, error) {
	next, wait, skipped, err := pulls.Choose(ctx, r.Forge, r.Ledger, r.Campaign, r.Plan, r.Now(), r.Ledger.Of(r.Campaign.Name).FreeSlots(r.Campaign))
	for _, report := range skipped {
		PrintReport(r.Log, report)
	}
	if until := r.retryTime(err); !until.IsZero() {
		return campaign.Wait{Until: until}, nil
	}
	if err != nil {
		return wait, err
	}
	claimed, err := r.Ledger.Claim(r.Campaign, r.Plan, next, "")
	if err != nil {
		return wait, err
	}
	for _, c := range claimed {
		r.startRun(ctx, c, "starts")
	}
	return wait, nil
}

// Limits on waiting for a forge that fails.
const (
	outagePause = 5 * time.Minute // shortest wait, unless a run ends
	maxOutage   = 6 * time.Hour   // Run does not wait for the end of a longer outage
)

// retryTime returns when to ask the forge again after a failure, and logs that. It returns the zero time if Run does not
// wait, another attempt would fail too, or the outage would last longer than maxOutage. It keeps outageBegan up to date.
func (r *localRuns) retryTime(err error) (until time.Time) {
	now := r.Now()
	failed, isOfForge := errors.AsType[*forge.Error](err)
	isUntrusted := errors.As(err, new(*tls.CertificateVerificationError)) // until a person trusts the certificate
	if !isOfForge || isUntrusted || failed.Kind != forge.Unavailable && failed.Kind != forge.RateLimited {
		r.outageBegan = time.Time{}
		return until
	}
	if r.outageBegan.IsZero() {
		r.outageBegan = now
	}
	until = now.Add(max(failed.RetryAfter, outagePause))
	if !r.Schedule.Wait || until.Sub(r.outageBegan) > maxOutage {
		return time.Time{}
	}
	fmt.Fprintf(r.Log, "%s; trying again at %s\n", progress.Printable(err.Error()), until.UTC().Format(time.RFC3339))
	return until
}

// startRun runs a claim in the background. verb is for the log.
func (r *localRuns) startRun(ctx context.Context, c campaign.Claimed, verb string) {
	r.running++
	fmt.Fprintln(r.Log, progress.Printable(c.Target.Key), verb)
	since := r.Ledger.Of(r.Campaign.Name).TargetState(c.Target.Key).Since
	go func() {
		report, settled, err := Work(ctx, r.Options, c, since)
		r.ended <- runEnd{c, report, settled, err}
	}()
}

// bookEnd books the end of a run.
func (r *localRuns) bookEnd(e runEnd) error {
	r.running--
	if !e.settled {
		fmt.Fprintln(r.Log, progress.Printable(e.claimed.Target.Key), "was interrupted, and resumes with the next start")
		return e.err
	}
	_, err := r.Ledger.Settle(r.Campaign, *e.report)
	PrintReport(r.Log, *e.report)
	return errors.Join(err, e.err)
}

// PrintReport prints the result of a run as one line.
func PrintReport(to io.Writer, r campaign.Report) {
	line := r.Target + " " + r.Outcome + "/" + r.Reason
	if r.Message != "" {
		line += ": " + r.Message
	}
	fmt.Fprintln(to, progress.Printable(markdown.Cut(line, 500)))
}
