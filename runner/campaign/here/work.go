package here

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/agent-ci/agent-ci/policy/outside"
	"github.com/agent-ci/agent-ci/runner/campaign"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/price"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/transcript"
)

// work is the run of one claim. It is used by one goroutine.
type work struct {
	Options
	target  campaign.Target
	claimed campaign.Claimed
	since   time.Time // of the claim
	job     *job.Job  // nil where the target has none any more
}

// jobOf is the job of a target, before the defaults of its repository.
func jobOf(c *job.Campaign, t campaign.Target) *job.Job {
	filled, err := campaign.JobOf(c, t)
	if err != nil {
		return nil
	}
	j, err := job.LoadTemplate(job.Layer{Name: t.Key, Kind: job.File, Data: filled})
	if err != nil {
		return nil
	}
	return j
}

// mostStarts is how often the process of a claim is started: a run that ends without a result is
// gone on with, and in the end given up.
const mostStarts = 3

// Work brings the run of a claim of that time to its end, from wherever it is. It takes neither the
// ledger nor the plan's targets. settled is false where the run is to go on later.
func Work(ctx context.Context, o Options, t campaign.Target, c campaign.Claimed, since time.Time) (report campaign.Report, settled bool) {
	w := &work{Options: o, target: t, claimed: c, since: since, job: jobOf(o.Campaign, t)}
	report, settled = w.untilEnded(ctx)
	if settled {
		w.Checkouts.free(w.checkout())
	}
	return report, settled
}

func (w *work) untilEnded(ctx context.Context) (report campaign.Report, settled bool) {
	var last error
	for starts := 0; ; starts++ {
		lock, err := w.lock(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return campaign.Lost(w.claimed, ctx.Err()), false
		case err != nil:
			return campaign.Lost(w.claimed, err), true
		}
		at, err := w.look(w.Outages && starts == 0)
		hung := errors.Is(last, errHung)
		switch {
		case at.report != nil && (at.ended || hung || starts == mostStarts):
			lock.Close()
			return *at.report, true
		case err != nil || hung || starts == mostStarts:
			report = campaign.Lost(w.claimed, errors.Join(err, last, lock.Close()))
			return unpaid(report, at), true
		case ctx.Err() != nil:
			lock.Close()
			return campaign.Lost(w.claimed, ctx.Err()), false
		case at.fresh && (w.claimed.Template != w.Plan.Template || w.target.Repository == ""):
			lock.Close()
			return superseded(w.claimed), true
		}
		last = errors.Join(w.process(ctx, lock, at), lock.Close())
	}
}

// unpaid takes off a report without usage what of the claim is known not to be used.
func unpaid(r campaign.Report, at place) campaign.Report {
	switch {
	case at.fresh:
		r.CostUSD, r.Tokens = new(float64), new(int64)
	case at.spent != nil:
		r.CostUSD, r.Tokens = at.spent.CostUSD, at.spent.Tokens
	}
	return r
}

// superseded is the report of a run that had not begun when another plan came to hold.
func superseded(c campaign.Claimed) campaign.Report {
	return campaign.Report{
		Target: c.Target, Template: c.Template, Attempt: c.Attempt, Outcome: string(outcome.Cancelled), Reason: "replanned",
		Message: "The run had not begun when another plan was made.", CostUSD: new(float64), Tokens: new(int64), PullRequest: campaign.PullRequest{Operation: "none"},
	}
}

// place is what there is of a claim's run.
type place struct {
	fresh  bool             // nobody was paid yet, and it begins anew
	resume bool             // it can go on
	lost   campaign.Claim   // what answers may have used that are not booked
	spent  *campaign.Report // usage of a run that has no room to go on, its lost answers included
	report *campaign.Report // of its end
	ended  bool             // for good
}

func (w *work) directory() string { return campaign.RunDirectory(w.Folder, w.claimed) }

func (w *work) checkout() string { return w.directory() + ".repo" }

// look finds out how far the run is. Nobody works on it meanwhile. What had not begun is cleared away.
func (w *work) look(outages bool) (place, error) {
	path := w.directory()
	dir, err := record.OpenDirectory(path)
	if errors.Is(err, os.ErrNotExist) { // also a directory without a transcript
		return place{fresh: true}, os.RemoveAll(path)
	}
	if err != nil {
		return place{}, err
	}
	defer dir.Close()
	asked, unanswered, err := requests(dir)
	if err != nil {
		return place{}, err
	}
	lost := w.lost(unanswered)
	report, ended, err := campaign.ReportOf(dir, w.claimed)
	if err != nil {
		return place{}, err
	}
	at := place{lost: lost}
	if ended {
		at.report = w.withLost(&report, lost)
	}
	if goesOn := report.Outcome == string(outcome.Cancelled) || outages && report.MayGoOn(); ended && !goesOn {
		at.ended = true
		return at, nil
	}
	unresumable := w.Resumable(dir)
	switch {
	case unresumable == nil && w.affords(lost):
		at.resume = true
		return at, nil
	case unresumable == nil:
		at.spent, err = w.spent(dir, lost)
		unresumable = errors.Join(err, fmt.Errorf("%d answers that it had asked for were lost and may have cost %.4f dollars and %d tokens, for which its limits have no room", len(unanswered), lost.USD, lost.Tokens))
	case asked == 0:
		return place{fresh: true}, os.RemoveAll(path)
	}
	at.ended = ended // somebody ended it, for good
	if ended {
		return at, nil
	}
	return at, fmt.Errorf("it was killed and cannot go on: %w", unresumable)
}

// requests counts what a run asked of models, and returns the requests during which it was killed,
// before the answer was booked.
func requests(dir *record.Directory) (asked int, lost []campaign.Request, err error) {
	f, err := dir.Open(record.TranscriptFile)
	if err != nil {
		return 0, nil, fmt.Errorf("read the transcript: %w", err)
	}
	defer f.Close()
	agents := map[string]*conversation{}
	for event, err := range transcript.Read(f) {
		if torn := (*transcript.TornError)(nil); errors.As(err, &torn) {
			break
		}
		if err != nil {
			return 0, nil, fmt.Errorf("read the transcript: %w", err)
		}
		if agents[event.Agent] == nil {
			agents[event.Agent] = &conversation{}
		}
		if event.Type == transcript.TypeModelRequest {
			asked++
		}
		unanswered, err := agents[event.Agent].take(event)
		if err != nil {
			return 0, nil, fmt.Errorf("read the transcript: event %d: %w", event.Seq, err)
		}
		lost = append(lost, unanswered...)
	}
	for _, c := range agents {
		lost = append(lost, c.waiting...)
	}
	return asked, lost, nil
}

// conversation is what an agent asked its model.
type conversation struct {
	waiting []campaign.Request // for its answer: one, or none
	bytes   int                // of the last request
	counted campaign.Request   // the last one that the provider counted, with its answer
	of      int                // the bytes of that
}

// take returns the request that an event shows to have got no answer.
func (c *conversation) take(e transcript.Event) (unanswered []campaign.Request, err error) {
	switch e.Type {
	case transcript.TypeModelRequest:
		var request transcript.ModelRequest
		err = json.Unmarshal(e.Data, &request)
		unanswered, c.waiting, c.bytes = c.waiting, []campaign.Request{{Model: request.Model, Input: c.input(request)}}, request.Bytes
	case transcript.TypeModelResponse:
		var response transcript.ModelResponse
		err = json.Unmarshal(e.Data, &response)
		if len(c.waiting) > 0 && !response.Aside {
			c.counted, c.of = campaign.Request{Model: c.waiting[0].Model, Input: response.Usage.Input}, c.bytes
			if c.counted.Input > 0 {
				c.counted.Input += response.Usage.Output
			}
		}
		c.waiting = nil
	case transcript.TypeModelFailure:
		c.waiting = nil
	case transcript.TypeCompaction, transcript.TypeModelFallback:
		c.counted = campaign.Request{} // the next request is another one
	}
	return unanswered, err
}

// input returns how many tokens a request has at most: those of the one before, as the provider
// counted them, and one for each byte that was added.
func (c *conversation) input(r transcript.ModelRequest) int64 {
	most := int64(r.Bytes) // a token has a byte or more
	if c.counted.Input > 0 && c.counted.Model == r.Model && !r.Aside {
		most = min(most, c.counted.Input+int64(max(r.Bytes-c.of, 0)))
	}
	return most
}

// lost returns what requests may have used whose answers were lost.
func (w *work) lost(requests []campaign.Request) (sum campaign.Claim) {
	if w.job == nil {
		return sum
	}
	most := campaign.LimitsOf(w.job).Request(w.claimed.Claim)
	for _, r := range requests {
		each := most
		if len(w.Models) > 0 {
			known := campaign.LostRequest(w.job, w.Models, r)
			each = campaign.Claim{USD: min(most.USD, known.USD), Tokens: min(most.Tokens, known.Tokens)}
		}
		sum.USD, sum.Tokens = price.Sum(sum.USD, each.USD), sum.Tokens+each.Tokens
	}
	return sum
}

// limits are those under which the run stays within its claim, whatever answers were lost. A limit
// of 0 is none.
func (w *work) limits(lost campaign.Claim) (usd float64, tokens int64) {
	limits := w.job.Limits
	return price.Sum(limits.CostUSD, -lost.USD), limits.Tokens - lost.Tokens
}

// affords says whether a run that lost answers can go on within its claim.
func (w *work) affords(lost campaign.Claim) bool {
	if w.job == nil {
		return true
	}
	usd, tokens := w.limits(lost)
	return (w.job.Limits.CostUSD == 0 || usd > 0) && (w.job.Limits.Tokens == 0 || tokens > 0)
}

// spent returns the usage of a run that came to no end.
func (w *work) spent(dir *record.Directory, lost campaign.Claim) (*campaign.Report, error) {
	view, err := dir.Survey(func(*transcript.View, transcript.Event) error { return nil })
	if err != nil {
		return nil, err
	}
	r := &campaign.Report{}
	if slices.ContainsFunc(view.Warnings, func(w transcript.Warning) bool { return w.Code == campaign.NoUsage }) {
		return r, nil
	}
	tokens := view.Usage.Input + view.Usage.Output
	r.Tokens = &tokens
	if cost, known := transcript.CostOf(view.AllModels()); known {
		r.CostUSD = &cost
	}
	return w.withLost(r, lost), nil
}

// withLost adds to a report what lost answers may have cost, up to the claim.
func (w *work) withLost(r *campaign.Report, lost campaign.Claim) *campaign.Report {
	if lost.USD > 0 && r.CostUSD != nil {
		sum := min(price.Sum(*r.CostUSD, lost.USD), max(w.claimed.USD, *r.CostUSD))
		r.CostUSD = &sum
	}
	if lost.Tokens > 0 && r.Tokens != nil {
		sum := min(*r.Tokens+lost.Tokens, max(w.claimed.Tokens, *r.Tokens))
		r.Tokens = &sum
	}
	return r
}

// lookAgain is how often a run of an earlier starter is looked at.
const lookAgain = 100 * time.Millisecond

var errHung = errors.New("it went on far beyond the time that its job gives it, and was ended")

// lock takes the log of the run, which a process of the run holds as long as it lives, from before
// its first instruction on: so none works unseen, whoever started it.
func (w *work) lock(ctx context.Context) (*os.File, error) {
	log := w.directory() + ".log"
	if err := os.MkdirAll(filepath.Dir(log), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(log, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("write the log of the run: %w", err)
	}
	left := time.Duration(0)
	if patience := w.patience(); patience > 0 {
		left = max(w.since.Add(patience).Sub(w.Now()), w.Farewell) // what was killed a moment ago ends, too
	}
	if err = w.hold(ctx, f, left); errors.Is(err, errStays) {
		err = w.endOrphan(ctx, f)
	}
	if errors.Is(err, errStays) {
		err = fmt.Errorf("%w; its log is %s", err, log)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// hold waits for the log of the run; where that takes longer than so long, it is errStays. 0 is no bound.
func (w *work) hold(ctx context.Context, log *os.File, most time.Duration) error {
	if most > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeoutCause(ctx, most, errStays)
		defer cancel()
	}
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	for {
		err := syscall.Flock(int(log.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// patience is how long a run may take in all; 0 where its job does not bound it.
func (w *work) patience() time.Duration {
	if w.job == nil || w.job.Limits.Time == 0 {
		return 0
	}
	all := w.job.Limits.Time
	if w.job.Recipe.Run != "" {
		all += w.job.Recipe.Timeout
	}
	for _, step := range w.job.Setup {
		all += step.Timeout
	}
	for _, check := range w.job.Verify {
		all += check.Timeout * job.Duration((1+check.Rerun)*(2+w.job.VerifyAttempts))
	}
	return time.Duration(all) + w.Spare
}

// process starts the run, or goes on with it, and waits for its end. What came of it the run directory
// tells.
func (w *work) process(ctx context.Context, log *os.File, at place) error {
	args, err := w.arguments(ctx, log, at)
	if err != nil {
		return err
	}
	if patience := w.patience(); patience > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeoutCause(ctx, patience, errHung)
		defer cancel()
	}
	command := outside.Run.Command(ctx, w.Program, w.Folder, environment(w.Environ), args...)
	command.Stdout, command.Stderr = log, w.said(log)
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a signal of the terminal comes from here, once
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = w.Farewell
	if err = command.Start(); err == nil {
		err = errors.Join(w.note(command.Process), command.Wait())
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("agent-ci ended with %w; its log is %s.log", err, w.directory())
	}
	return nil
}

// said is where the run tells what it does. Its log stays its standard output in any case: that is its
// lock.
func (w *work) said(log *os.File) io.Writer {
	if w.Said == nil {
		return log
	}
	return w.Said
}

func (w *work) quiet() []string {
	if w.Said == nil {
		return []string{"--quiet"}
	}
	return nil
}

// arguments are those of agent-ci.
func (w *work) arguments(ctx context.Context, log *os.File, at place) ([]string, error) {
	directory := w.directory()
	if at.resume {
		return append(append([]string{"resume", directory}, w.quiet()...), w.limitFlags(at.lost)...), nil
	}
	filled, err := campaign.JobOf(w.Campaign, w.target)
	if err != nil {
		return nil, err
	}
	file := directory + ".yml"
	if err := os.WriteFile(file, filled, 0o600); err != nil {
		return nil, fmt.Errorf("write the job of %s: %w", w.target.Key, err)
	}
	args := append([]string{"run", "--job", file, "--out", directory}, w.quiet()...)
	args = append(append(args, w.limitFlags(campaign.Claim{})...), w.Args...)
	if w.Checkouts == nil {
		return args, nil
	}
	warn := func(err error) { fmt.Fprintf(w.said(log), "warning: %s: %v\n", w.target.Key, err) }
	if err := w.Checkouts.make(ctx, w.target, w.checkout(), warn); err != nil {
		if w.Checkouts.Only {
			return nil, fmt.Errorf("make the checkout: %w", err)
		}
		return args, nil // the run clones, and says what is wrong
	}
	return append(args, "--repo", w.checkout()), nil
}

// limitFlags hold the run to its claim, whatever variables of the surroundings say.
func (w *work) limitFlags(lost campaign.Claim) (flags []string) {
	if w.job == nil {
		return nil
	}
	usd, tokens := w.limits(lost)
	if w.job.Limits.CostUSD > 0 && w.claimed.USD > 0 {
		flags = append(flags, "--set", "limits.cost_usd="+strconv.FormatFloat(usd, 'f', -1, 64))
	}
	if w.job.Limits.Tokens > 0 {
		flags = append(flags, "--set", "limits.tokens="+strconv.FormatInt(tokens, 10))
	}
	return flags
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
