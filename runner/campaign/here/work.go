package here

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/agent-ci/agent-ci/policy/store"
	"github.com/agent-ci/agent-ci/runner/campaign/spec"
	"github.com/agent-ci/agent-ci/runner/task/config"

	"github.com/agent-ci/agent-ci/policy/outside"
	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/price"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// work is the run of one claim, used by one goroutine.
type work struct {
	Options
	claimed campaign.Claimed
	since   time.Time // when the claim was made
	job     *job.Job  // empty if the job cannot be loaded
}

// maxStarts is how often a claim's process starts before a run without a result counts as lost.
const maxStarts = 3

// Work performs the run of a claim made at since. It starts, resumes or only reads the run, whatever its state,
// and writes the report beside the run directory. settled is false after an interruption: the next Work
// resumes the run. report is nil if the run has not ended at all.
func Work(ctx context.Context, o Options, c campaign.Claimed, since time.Time) (report *campaign.Report, settled bool, err error) {
	w := &work{Options: o, claimed: c, since: since, job: loadTargetJob(o.Campaign, c.Target)}
	report, settled = w.runUntilEnded(ctx)
	if report == nil {
		return nil, settled, nil
	}
	mayResume := w.MayStartAgain && report.IsResumable()
	if settled && w.OnForge && !mayResume { // nothing needs its clone any more
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

// RefusedReport returns the report of a run that may not start. Its cost is 0, unless an earlier start
// began the run.
func (o Options) RefusedReport(c campaign.Claimed, why error) *campaign.Report {
	r := campaign.LostReport(c, why)
	if _, err := os.Stat(campaign.RunDirectory(o.Folder, c)); errors.Is(err, os.ErrNotExist) {
		r = r.Unpaid()
	}
	return &r
}

// loadTargetJob returns a target's job without its repository's defaults. If the job cannot be loaded, it
// returns an empty job: the run itself reports the mistake.
func loadTargetJob(c *spec.Campaign, t campaign.Target) *job.Job {
	filled, err := campaign.FillJob(c, t)
	if err == nil {
		if j, err := job.LoadTemplate(config.Layer{Name: t.Key, Kind: config.FileLayer, Data: filled}); err == nil {
			return j
		}
	}
	return &job.Job{}
}

// runUntilEnded starts or resumes the run until it has ended, and returns its report. settled is false if ctx ended
// first.
func (w *work) runUntilEnded(ctx context.Context) (report *campaign.Report, settled bool) {
	var lastErr error
	for starts := 0; ; starts++ {
		log, err := w.lock(ctx)
		if err != nil && ctx.Err() != nil {
			return nil, false
		}
		if err != nil {
			return new(campaign.LostReport(w.claimed, err)), true
		}
		isFirst := starts == 0
		state, err := w.findState(isFirst)
		giveUp := errors.Is(lastErr, errHung) || starts == maxStarts
		switch {
		case state.report != nil && (state.ended || giveUp):
			log.Close()
			return state.report, true
		case err != nil || giveUp: // without a report
			lost := campaign.LostReport(w.claimed, errors.Join(err, lastErr, log.Close()))
			if state.fresh {
				lost = lost.Unpaid()
			}
			return &lost, true
		case ctx.Err() != nil:
			log.Close()
			return state.report, false
		case state.fresh && w.claimed.Template != w.Template:
			log.Close()
			return new(replannedReport(w.claimed)), true
		}
		lastErr = errors.Join(w.runProcess(ctx, log, state), log.Close())
	}
}

// replannedReport returns the report of a run that did not begin before a new plan was made.
func replannedReport(c campaign.Claimed) campaign.Report {
	r := campaign.LostReport(c, nil).Unpaid()
	r.Outcome, r.Reason, r.Message = string(outcome.Cancelled), "replanned", "The run had not begun when another plan was made."
	return r
}

// runState is the state of a claim's run.
type runState struct {
	fresh    bool             // no model was asked yet: start it from the beginning
	resume   bool             // the run can resume
	lostCost campaign.Claim   // maximum cost of answers that the record lacks
	report   *campaign.Report // nil if the run has no result
	ended    bool             // the result is final
}

func (w *work) directory() string { return campaign.RunDirectory(w.Folder, w.claimed) }

func (w *work) checkoutFolder() string { return w.directory() + ".repo" }

// findState returns the state of the claim's run. The caller holds the run's lock. resumeOutages counts a
// run that failed by an outage as resumable. findState deletes the directory of a run that asked no model
// and cannot resume.
func (w *work) findState(resumeOutages bool) (state runState, err error) {
	folder := w.directory()
	dir, err := record.OpenDirectory(folder)
	if errors.Is(err, os.ErrNotExist) { // no directory, or one without a transcript
		return runState{fresh: true}, os.RemoveAll(folder)
	}
	if err != nil {
		return runState{}, err
	}
	defer dir.Close()
	requests, lost, err := countRequests(dir)
	if err != nil {
		return runState{}, err
	}
	for _, r := range lost {
		cost := w.claimed.MaxLostUsage(w.job, w.Models, r)
		state.lostCost = campaign.Claim{USD: price.AddCosts(state.lostCost.USD, cost.USD), Tokens: state.lostCost.Tokens + cost.Tokens}
	}
	report, hasResult, err := campaign.ReadReport(dir, w.claimed)
	if err != nil {
		return state, err
	}
	if hasResult {
		w.addLostCost(&report, state.lostCost)
		state.report = &report
	}
	mayResume := !hasResult || report.Outcome == string(outcome.Cancelled) || resumeOutages && report.IsResumable()
	if !mayResume {
		state.ended = true
		return state, nil
	}
	obstacle := w.resumeObstacle(dir, len(lost), state.lostCost)
	switch {
	case obstacle == nil:
		state.resume = true
		return state, nil
	case requests == 0:
		return runState{fresh: true}, os.RemoveAll(folder)
	case hasResult: // it cannot resume, so the result is final
		state.ended = true
		return state, nil
	}
	return state, fmt.Errorf("it was killed and cannot resume: %w", obstacle)
}

// resumeObstacle returns why the run in a directory cannot resume, or nil. lostAnswers is the number of answers that its record lacks.
func (w *work) resumeObstacle(dir *record.Directory, lostAnswers int, cost campaign.Claim) error {
	if err := w.Resumable(dir, w.Session); err != nil || w.canAfford(cost) {
		return err
	}
	return fmt.Errorf("%d answers that it had asked for were lost and may have cost %.4f dollars and %d tokens, for which its limits have no room", lostAnswers, cost.USD, cost.Tokens)
}

// countRequests counts a run's model requests. lost are those whose answer was not recorded before the run was killed.
func countRequests(dir *record.Directory) (count int, lost []campaign.Request, err error) {
	unanswered := map[string][]campaign.Request{} // unanswered request by agent: one or none
	_, err = dir.FoldEvents(func(_ *transcript.View, event transcript.Event) error {
		switch request := event.Content.(type) {
		case transcript.ModelRequest:
			count++
			lost = append(lost, unanswered[event.Agent]...)
			unanswered[event.Agent] = []campaign.Request{{Model: request.Model, Input: int64(request.Bytes)}} // an upper bound: each token has at least one byte
		case transcript.ModelResponse, transcript.ModelFailure:
			delete(unanswered, event.Agent)
		}
		return nil
	})
	if err != nil {
		return 0, nil, err
	}
	for _, each := range unanswered {
		lost = append(lost, each...)
	}
	return count, lost, nil
}

// remainingLimits returns the limits that are left for a run after the cost of lost answers.
func (w *work) remainingLimits(lost campaign.Claim) campaign.Claim {
	return campaign.Claim{USD: price.AddCosts(w.job.Limits.CostUSD, -lost.USD), Tokens: w.job.Limits.Tokens - lost.Tokens}
}

// canAfford reports whether a run can resume within its claim despite lost answers. A limit of 0 means no limit.
func (w *work) canAfford(lost campaign.Claim) bool {
	remaining := w.remainingLimits(lost)
	return (w.job.Limits.CostUSD == 0 || remaining.USD > 0) && (w.job.Limits.Tokens == 0 || remaining.Tokens > 0)
}

// addLostCost adds the maximum cost of lost answers to a report. The sum does not exceed the claim.
func (w *work) addLostCost(r *campaign.Report, lost campaign.Claim) {
	if lost.USD > 0 && r.CostUSD != nil {
		r.CostUSD = new(min(price.AddCosts(*r.CostUSD, lost.USD), max(w.claimed.USD, *r.CostUSD)))
	}
	if lost.Tokens > 0 && r.Tokens != nil {
		r.Tokens = new(min(*r.Tokens+lost.Tokens, max(w.claimed.Tokens, *r.Tokens)))
	}
}

var errHung = errors.New("it ran far beyond the time that its job gives it, and was killed")

// lock waits for the lock of the run's log, and returns the open log. The run's process keeps this lock
// until it exits, so two processes never work on one run. If another process keeps the lock longer than the
// run may take, lock returns an error: it cannot be sure which process to kill.
func (w *work) lock(ctx context.Context) (*os.File, error) {
	path := w.directory() + ".log"
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("write the log of the run: %w", err)
	}
	if limit := w.timeLimit(); limit > 0 {
		wait := max(w.since.Add(limit).Sub(w.Now()), w.ExitGrace) // a process killed a moment ago may need ExitGrace to exit
		var cancel func()
		ctx, cancel = context.WithTimeoutCause(ctx, wait, fmt.Errorf("a process that an earlier start left does not end; kill it before you have the target run again, its log is %s", path))
		defer cancel()
	}
	err = store.Await(ctx, func() (bool, error) { return store.Lock(f) })
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// timeLimit returns how long a run may take in total, or 0 if its job has no limit.
func (w *work) timeLimit() time.Duration {
	if w.job.Limits.Time == 0 {
		return 0
	}
	total := w.job.Limits.Time
	if w.job.Recipe.Run != "" {
		total += w.job.Recipe.Timeout
	}
	for _, step := range w.job.Setup {
		total += step.Timeout
	}
	rounds := 2 + w.job.VerifyAttempts // the base, the change, and each attempt to fix it
	for _, check := range w.job.Verify {
		total += check.Timeout * job.Duration((1+check.Rerun)*rounds)
	}
	return time.Duration(total) + w.TimeMargin
}

// runProcess starts or resumes the run and waits until it exits. The run directory then has the result.
func (w *work) runProcess(ctx context.Context, log *os.File, state runState) error {
	args, err := w.arguments(ctx, state)
	if err != nil {
		return err
	}
	if limit := w.timeLimit(); limit > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeoutCause(ctx, limit, errHung)
		defer cancel()
	}
	command := outside.Run.Command(ctx, w.Program, w.Folder, environment(w.Environ), args...)
	command.Stdout, command.Stderr = log, log // standard output must stay the log, because the process holds the lock by it
	if w.Output != nil {
		command.Stderr = w.Output
	}
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // in its own session, so that a signal from the terminal reaches it only once, through command.Cancel
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = w.ExitGrace
	err = command.Run()
	if err != nil && command.Process != nil {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) // kill children such as git, which would continue in the run directory
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("agent-ci ended with %w; its log is %s", err, log.Name())
	}
	return nil
}

// arguments returns the arguments of agent-ci that resume the run, or begin a new one after preparing it.
func (w *work) arguments(ctx context.Context, state runState) ([]string, error) {
	args := []string{"resume", w.directory()}
	if !state.resume {
		var err error
		if args, err = w.prepareRun(ctx); err != nil {
			return nil, err
		}
	}
	if w.Output == nil {
		args = append(args, "--quiet")
	}
	if w.Session != "" {
		args = append(args, "--replay", w.Session)
	}
	return append(args, w.limitFlags(state.lostCost)...), nil
}

// prepareRun writes the job file of a new run and makes its checkout. It returns the arguments that begin the run.
func (w *work) prepareRun(ctx context.Context) ([]string, error) {
	filled, err := campaign.FillJob(w.Campaign, w.claimed.Target)
	if err != nil {
		return nil, err
	}
	file := w.directory() + ".yml"
	if err := os.WriteFile(file, filled, 0o600); err != nil {
		return nil, fmt.Errorf("write the job of %s: %w", w.claimed.Target.Key, err)
	}
	args := append([]string{"run", file, "--out", w.directory()}, w.Args...)
	if w.CheckOut == nil {
		return args, nil
	}
	if err = os.RemoveAll(w.checkoutFolder()); err == nil { // a leftover of an earlier start that did not begin
		err = w.CheckOut(ctx, w.claimed.Target, w.checkoutFolder())
	}
	if err != nil {
		return nil, fmt.Errorf("make the checkout: %w", err)
	}
	return append(args, "--repo", w.checkoutFolder()), nil
}

// limitFlags returns flags that keep the run within its claim, whatever the environment variables say.
func (w *work) limitFlags(lost campaign.Claim) (flags []string) {
	remaining := w.remainingLimits(lost)
	if w.job.Limits.CostUSD > 0 && w.claimed.USD > 0 {
		flags = append(flags, "--set", "limits.cost_usd="+strconv.FormatFloat(remaining.USD, 'f', -1, 64))
	}
	if w.job.Limits.Tokens > 0 {
		flags = append(flags, "--set", "limits.tokens="+strconv.FormatInt(remaining.Tokens, 10))
	}
	return flags
}

// stepVariables lists variables of the current workflow step that its runs must not inherit.
var stepVariables = []string{
	"GITHUB_ACTIONS", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_STATE", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_EVENT_NAME", "GITHUB_EVENT_PATH", "GITHUB_REPOSITORY",
}

// environment returns environ without the variables of the workflow step.
func environment(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(stepVariables, name)
	})
}
