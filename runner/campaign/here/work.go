package here

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/agent-ci/agent-ci/runner/campaign/spec"
	"github.com/agent-ci/agent-ci/runner/task/config"

	"github.com/agent-ci/agent-ci/policy/outside"
	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/price"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/eventlog"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// work is the run of a claim, for one goroutine.
type work struct {
	Options
	claimed campaign.Claimed
	since   time.Time // of the claim
	job     *job.Job  // empty if the campaign file has another job by now
}

// maxStarts is how often the process of a claim is started, before a run without a result is given up.
const maxStarts = 3

// Work completes the run of a claim made at since, from any state, and writes its report beside the
// run directory. settled is false after an interruption: the next Work resumes it. Its report is
// nil without any end.
func Work(ctx context.Context, o Options, c campaign.Claimed, since time.Time) (report *campaign.Report, settled bool, err error) {
	w := &work{Options: o, claimed: c, since: since, job: jobOf(o.Campaign, c.Target)}
	report, settled = w.untilEnded(ctx)
	if report == nil {
		return nil, settled, nil
	}
	if settled && w.Discard && (w.Ledger != nil || !report.IsResumable()) { // on another host, a later start may resume it
		_ = os.RemoveAll(filepath.Join(w.directory(), record.CheckoutFolder))
	}
	raw, err := report.Encode()
	if err == nil {
		err = os.WriteFile(w.directory()+campaign.ReportSuffix, raw, 0o600)
	}
	if err != nil {
		err = fmt.Errorf("write the report of the run: %w", err)
	}
	return report, settled, err
}

// Refuse returns the report of a run that may not start. It is free unless an earlier start began
// it.
func (o Options) Refuse(c campaign.Claimed, why error) *campaign.Report {
	r := campaign.LostReport(c, why)
	if _, err := os.Stat(campaign.RunDirectory(o.Folder, c)); errors.Is(err, os.ErrNotExist) {
		r = r.Unpaid()
	}
	return &r
}

// jobOf returns the job of a target, before the defaults of its repository.
func jobOf(c *spec.Campaign, t campaign.Target) *job.Job {
	filled, err := campaign.JobOf(c, t)
	if err == nil {
		if j, err := job.LoadTemplate(config.Layer{Name: t.Key, Kind: config.File, Data: filled}); err == nil {
			return j
		}
	}
	return &job.Job{}
}

// untilEnded starts the run, or resumes it, until it has ended. It returns the report to settle the run with, and
// false if ctx ended before that.
func (w *work) untilEnded(ctx context.Context) (report *campaign.Report, settled bool) {
	var last error
	for starts := 0; ; starts++ {
		log, err := w.lock(ctx)
		if err != nil && ctx.Err() != nil {
			return nil, false
		}
		if err != nil {
			return new(campaign.LostReport(w.claimed, err)), true
		}
		at, err := w.findState(starts == 0)
		givenUp := errors.Is(last, errHung) || starts == maxStarts
		switch {
		case at.report != nil && (at.ended || givenUp):
			log.Close()
			return at.report, true
		case err != nil || givenUp:
			lost := campaign.LostReport(w.claimed, errors.Join(err, last, log.Close()))
			if at.fresh {
				lost = lost.Unpaid()
			}
			return &lost, true
		case ctx.Err() != nil:
			log.Close()
			return at.report, false
		case at.fresh && w.claimed.Template != w.Template:
			log.Close()
			return new(replannedReport(w.claimed)), true
		}
		last = errors.Join(w.process(ctx, log, at), log.Close())
	}
}

// replannedReport returns the report of a run not begun before another plan.
func replannedReport(c campaign.Claimed) campaign.Report {
	r := campaign.LostReport(c, nil).Unpaid()
	r.Outcome, r.Reason, r.Message = string(outcome.Cancelled), "replanned", "The run had not begun when another plan was made."
	return r
}

// place is how far the run of a claim is.
type place struct {
	fresh  bool             // nobody was paid yet, and it starts again
	resume bool             // it can resume
	lost   campaign.Claim   // what answers may have cost that are not booked
	report *campaign.Report // of its end
	ended  bool             // for good
}

func (w *work) directory() string { return campaign.RunDirectory(w.Folder, w.claimed) }

func (w *work) checkout() string { return w.directory() + ".repo" }

// findState finds the run's state while nobody works on it. It removes an unstarted run. outages resumes
// a run after an outage.
func (w *work) findState(outages bool) (at place, err error) {
	path := w.directory()
	dir, err := record.OpenDirectory(path)
	if errors.Is(err, os.ErrNotExist) { // also a directory without a transcript
		return place{fresh: true}, os.RemoveAll(path)
	}
	if err != nil {
		return place{}, err
	}
	defer dir.Close()
	asked, lost, err := requests(dir)
	if err != nil {
		return place{}, err
	}
	for _, r := range lost {
		most := w.claimed.LostRequest(w.job, w.Models, r)
		at.lost = campaign.Claim{USD: price.Sum(at.lost.USD, most.USD), Tokens: at.lost.Tokens + most.Tokens}
	}
	report, ended, err := campaign.ReportOf(dir, w.claimed)
	if err != nil {
		return at, err
	}
	if ended {
		w.book(&report, at.lost)
		at.report = &report
	}
	if goesOn := report.Outcome == string(outcome.Cancelled) || outages && report.IsResumable(); ended && !goesOn {
		at.ended = true
		return at, nil
	}
	unresumable := w.Resumable(dir)
	switch {
	case unresumable == nil && w.affords(at.lost):
		at.resume = true
		return at, nil
	case unresumable == nil:
		unresumable = fmt.Errorf("%d answers that it had asked for were lost and may have cost %.4f dollars and %d tokens, for which its limits have no room", len(lost), at.lost.USD, at.lost.Tokens)
	case asked == 0:
		return place{fresh: true}, os.RemoveAll(path)
	}
	if at.ended = ended; ended { // somebody ended it, for good
		return at, nil
	}
	return at, fmt.Errorf("it was killed and cannot resume: %w", unresumable)
}

// requests counts a run's model requests and returns those killed before their answer was booked.
func requests(dir *record.Directory) (asked int, lost []campaign.Request, err error) {
	f, err := dir.Open(record.TranscriptFile)
	if err != nil {
		return 0, nil, fmt.Errorf("read the transcript: %w", err)
	}
	defer f.Close()
	waiting := map[string][]campaign.Request{} // for an answer, by agents: one, or none
	for event, err := range eventlog.Read(f) {
		if torn := (*eventlog.TornError)(nil); errors.As(err, &torn) {
			break
		}
		if err != nil {
			return 0, nil, fmt.Errorf("read the transcript: %w", err)
		}
		switch event.Type {
		case transcript.TypeModelRequest:
			var request transcript.ModelRequest
			if err := json.Unmarshal(event.Data, &request); err != nil {
				return 0, nil, fmt.Errorf("read the transcript: event %d: %w", event.Seq, err)
			}
			asked++
			lost = append(lost, waiting[event.Agent]...)
			waiting[event.Agent] = []campaign.Request{{Model: request.Model, Input: int64(request.Bytes)}} // a token has a byte or more
		case transcript.TypeModelResponse, transcript.TypeModelFailure:
			delete(waiting, event.Agent)
		}
	}
	for _, each := range waiting {
		lost = append(lost, each...)
	}
	return asked, lost, nil
}

// remaining returns limits that keep the run within its claim despite lost answers.
func (w *work) remaining(lost campaign.Claim) campaign.Claim {
	return campaign.Claim{USD: price.Sum(w.job.Limits.CostUSD, -lost.USD), Tokens: w.job.Limits.Tokens - lost.Tokens}
}

// affords reports whether a run with lost answers can resume within its claim. A limit of 0 is
// none.
func (w *work) affords(lost campaign.Claim) bool {
	left := w.remaining(lost)
	return (w.job.Limits.CostUSD == 0 || left.USD > 0) && (w.job.Limits.Tokens == 0 || left.Tokens > 0)
}

// book adds the maximum cost of lost answers to a report, up to the claim.
func (w *work) book(r *campaign.Report, lost campaign.Claim) {
	if lost.USD > 0 && r.CostUSD != nil {
		r.CostUSD = new(min(price.Sum(*r.CostUSD, lost.USD), max(w.claimed.USD, *r.CostUSD)))
	}
	if lost.Tokens > 0 && r.Tokens != nil {
		r.Tokens = new(min(*r.Tokens+lost.Tokens, max(w.claimed.Tokens, *r.Tokens)))
	}
}

var errHung = errors.New("it ran far beyond the time that its job gives it, and was killed")

// lock locks the run's log. A run's process holds the lock during its whole life, so none works
// unnoticed, whoever started it. A much too old process is an error and stays alive, because its
// identity is uncertain.
func (w *work) lock(ctx context.Context) (*os.File, error) {
	log := w.directory() + ".log"
	if err := os.MkdirAll(filepath.Dir(log), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(log, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("write the log of the run: %w", err)
	}
	if patience := w.timeLimit(); patience > 0 {
		left := max(w.since.Add(patience).Sub(w.Now()), w.Farewell) // a process that was killed a moment ago ends, too
		var cancel func()
		ctx, cancel = context.WithTimeoutCause(ctx, left, fmt.Errorf("a process that an earlier start left does not end; kill it before you have the target run again, its log is %s", log))
		defer cancel()
	}
	err = record.AwaitLock(ctx, func() (bool, error) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		return errors.Is(err, syscall.EWOULDBLOCK), err
	})
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// timeLimit is how long a run may take in all; 0 if its job does not limit it.
func (w *work) timeLimit() time.Duration {
	if w.job.Limits.Time == 0 {
		return 0
	}
	all := w.job.Limits.Time
	if w.job.Recipe.Run != "" {
		all += w.job.Recipe.Timeout
	}
	for _, step := range w.job.Setup {
		all += step.Timeout
	}
	rounds := 2 + w.job.VerifyAttempts // the base, the change, and each attempt to fix it
	for _, check := range w.job.Verify {
		all += check.Timeout * job.Duration((1+check.Rerun)*rounds)
	}
	return time.Duration(all) + w.Spare
}

// process starts or resumes the run and waits for its end. The run directory has its result.
func (w *work) process(ctx context.Context, log *os.File, at place) error {
	args, err := w.arguments(ctx, at)
	if err != nil {
		return err
	}
	if patience := w.timeLimit(); patience > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeoutCause(ctx, patience, errHung)
		defer cancel()
	}
	command := outside.Run.Command(ctx, w.Program, w.Folder, environment(w.Environ), args...)
	command.Stdout, command.Stderr = log, log // standard output stays the log in any case: it is the lock
	if w.Output != nil {
		command.Stderr = w.Output
	}
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a signal of the terminal comes from here, once
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = w.Farewell
	err = command.Run()
	if err != nil && command.Process != nil {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) // a git that it started would go on in the run directory
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("agent-ci ended with %w; its log is %s", err, log.Name())
	}
	return nil
}

// arguments returns agent-ci's arguments.
func (w *work) arguments(ctx context.Context, at place) (args []string, err error) {
	directory := w.directory()
	defer func() {
		if w.Output == nil {
			args = append(args, "--quiet")
		}
		args = append(args, w.limitFlags(at.lost)...)
	}()
	if at.resume {
		return []string{"resume", directory}, nil
	}
	filled, err := campaign.JobOf(w.Campaign, w.claimed.Target)
	if err != nil {
		return nil, err
	}
	file := directory + ".yml"
	if err := os.WriteFile(file, filled, 0o600); err != nil {
		return nil, fmt.Errorf("write the job of %s: %w", w.claimed.Target.Key, err)
	}
	args = append([]string{"run", file, "--out", directory}, w.Args...)
	if w.CheckOut == nil {
		return args, nil
	}
	if err = os.RemoveAll(w.checkout()); err == nil { // of a run that had not begun
		err = w.CheckOut(ctx, w.claimed.Target, w.checkout())
	}
	if err != nil {
		return nil, fmt.Errorf("make the checkout: %w", err)
	}
	return append(args, "--repo", w.checkout()), nil
}

// limitFlags hold the run to its claim, whatever variables of the surroundings say.
func (w *work) limitFlags(lost campaign.Claim) (flags []string) {
	left := w.remaining(lost)
	if w.job.Limits.CostUSD > 0 && w.claimed.USD > 0 {
		flags = append(flags, "--set", "limits.cost_usd="+strconv.FormatFloat(left.USD, 'f', -1, 64))
	}
	if w.job.Limits.Tokens > 0 {
		flags = append(flags, "--set", "limits.tokens="+strconv.FormatInt(left.Tokens, 10))
	}
	return flags
}

// ofStep lists variables of the current workflow step, which do not belong to its runs.
var ofStep = []string{
	"GITHUB_ACTIONS", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_STATE", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_EVENT_NAME", "GITHUB_EVENT_PATH", "GITHUB_REPOSITORY",
}

func environment(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(ofStep, name)
	})
}
