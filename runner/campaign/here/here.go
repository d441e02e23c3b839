// Package here owns running the targets of a campaign on this machine: each as a process of
// agent-ci with a run directory of its own, and how processes that an earlier starter left are taken
// over. It refuses to know what a run does; what may start says the ledger.
package here

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/transcript"
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
	// Checkout is the checkout that a target is run in; empty where the run makes one. It may be nil.
	Checkout func(ctx context.Context, t campaign.Target) (dir string, err error)
	// Resumable says why the run in a directory cannot go on; nil where it can.
	Resumable func(*record.Directory) error
}

// Step is a target that started or ended.
type Step struct {
	Target campaign.Target
	Claim  campaign.Claimed
	Report *campaign.Report // nil where it started
	Taken  bool             // a run that an earlier starter left is gone on with
	Left   bool             // it was broken off, and goes on with the next start
}

// Run runs what may start until nothing may any more, and says why the rest waits. When ctx ends,
// runs are told to end and are waited for; their claims stay, and the next Run goes on with them.
func Run(ctx context.Context, o Options) (campaign.Wait, error) {
	r := &wave{Options: o, ended: make(chan end)}
	for _, claimed := range o.Ledger.Of(o.Campaign.Name).Unsettled() {
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
		if r.running == 0 {
			return wait, errors.Join(failed, context.Cause(ctx))
		}
		failed = errors.Join(failed, r.take(<-r.ended))
	}
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

func (r *wave) startMore(ctx context.Context) (campaign.Wait, error) {
	next, wait := r.Ledger.Next(r.Now(), r.Campaign, r.Plan, r.Campaign.Rollout.AtOnce)
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
	go func() {
		report, settled := r.work(ctx, t, c)
		r.ended <- end{t, c, report, settled}
	}()
}

// take books an end.
func (r *wave) take(e end) error {
	r.running--
	if !e.settled {
		r.Tell(Step{Target: e.target, Claim: e.claimed, Report: &e.report, Left: true})
		return nil
	}
	err := r.Ledger.Settle(r.Campaign, e.report)
	r.Tell(Step{Target: e.target, Claim: e.claimed, Report: &e.report})
	return err
}

// mostStarts is how often the process of a claim is started: a run that ends without a result is
// gone on with, and in the end given up.
const mostStarts = 3

// work runs a target to its end, from wherever it is. settled is false where it is to go on later.
func (r *wave) work(ctx context.Context, t campaign.Target, c campaign.Claimed) (report campaign.Report, settled bool) {
	var last error
	for starts := 0; ; {
		at, err := r.look(ctx, c)
		switch {
		case err != nil:
			last = err
		case at.report != nil && at.report.Outcome != string(outcome.Cancelled):
			return *at.report, true
		}
		if ctx.Err() != nil {
			return campaign.Lost(c, ctx.Err()), false
		}
		if starts == mostStarts || err != nil {
			return campaign.Lost(c, last), true
		}
		starts++
		last = r.process(ctx, t, c, at.resume)
	}
}

// place is what there is of a claim's run.
type place struct {
	report *campaign.Report
	resume bool
}

func (r *wave) directory(c campaign.Claimed) string {
	return filepath.Join(r.Folder, "runs", fmt.Sprintf("%s-%s-%d", c.Target, c.Template[:min(len(c.Template), 8)], c.Attempt))
}

// look finds out how far the run of a claim is, once nobody works on it any more. What had not begun
// is cleared away.
func (r *wave) look(ctx context.Context, c campaign.Claimed) (place, error) {
	path := r.directory(c)
	dir, err := record.OpenDirectory(path)
	if errors.Is(err, os.ErrNotExist) {
		return place{}, nil
	}
	if err != nil {
		return place{}, err
	}
	defer dir.Close()
	if err := untilFree(ctx, path); err != nil {
		return place{}, err
	}
	report, ended, err := campaign.ReportOf(dir, c)
	switch {
	case err != nil:
		return place{}, err
	case ended && report.Outcome != string(outcome.Cancelled):
		return place{report: &report}, nil
	case r.Resumable(dir) == nil:
		return place{resume: true}, nil
	case ended: // a person or a signal ended it, for good
		return place{report: &report}, nil
	case dir.Has(record.TranscriptFile) && asked(dir):
		return place{}, fmt.Errorf("it was killed and cannot go on: %w", r.Resumable(dir))
	}
	return place{}, os.RemoveAll(path)
}

// asked says whether a run had asked a model, as far as its transcript can be read.
func asked(dir *record.Directory) bool {
	f, err := dir.Open(record.TranscriptFile)
	if err != nil {
		return false
	}
	defer f.Close()
	for event, err := range transcript.Read(f) {
		if err != nil {
			return false
		}
		if event.Type == transcript.TypeModelRequest {
			return true
		}
	}
	return false
}

// lookAgain is how often a run of an earlier starter is looked at.
const lookAgain = 100 * time.Millisecond

// untilFree waits until nobody works in a run directory.
func untilFree(ctx context.Context, path string) error {
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	for {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
		if closed := f.Close(); !errors.Is(err, syscall.EWOULDBLOCK) {
			return errors.Join(err, closed)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// farewell is how long a process has to end in order, before it is killed.
const farewell = 5 * time.Minute

// process starts the run of a claim, or goes on with it, and waits for its end. What came of it the
// run directory tells.
func (r *wave) process(ctx context.Context, t campaign.Target, c campaign.Claimed, resume bool) error {
	args, err := r.arguments(ctx, t, c, resume)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(r.directory(c)+".log", os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("write the log of %s: %w", t.Key, err)
	}
	defer log.Close()
	command := exec.CommandContext(ctx, r.Program, args...)
	command.Dir, command.Env, command.Stdout, command.Stderr = r.Folder, environment(r.Environ), log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a signal of the terminal comes from here, once
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = farewell
	err = command.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); exited && ctx.Err() == nil {
		return fmt.Errorf("agent-ci ended with %w; its log is %s.log", err, r.directory(c))
	}
	return err
}

// arguments are those of agent-ci for a claim.
func (r *wave) arguments(ctx context.Context, t campaign.Target, c campaign.Claimed, resume bool) ([]string, error) {
	directory := r.directory(c)
	if resume {
		return []string{"resume", directory, "--quiet"}, nil
	}
	if err := os.MkdirAll(filepath.Dir(directory), 0o700); err != nil {
		return nil, err
	}
	filled, err := campaign.JobOf(r.Campaign, t)
	if err != nil {
		return nil, err
	}
	file := directory + ".yml"
	if err := os.WriteFile(file, filled, 0o600); err != nil {
		return nil, fmt.Errorf("write the job of %s: %w", t.Key, err)
	}
	args := append([]string{"run", "--job", file, "--out", directory, "--quiet"}, r.Args...)
	if r.Checkout == nil {
		return args, nil
	}
	checkout, err := r.Checkout(ctx, t)
	if err != nil {
		return nil, err
	}
	if checkout != "" {
		args = append(args, "--repo", checkout)
	}
	return args, nil
}

// ofStep are variables that are of this step of a workflow alone: what a run would write there, or
// read of an event, is not its own.
var ofStep = []string{
	"GITHUB_ACTIONS", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_STATE", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_EVENT_NAME", "GITHUB_EVENT_PATH", "GITHUB_REPOSITORY",
}

func environment(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(ofStep, name)
	})
}
