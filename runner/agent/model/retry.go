package model

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// Responder answers requests: a client of an API, a scripted session, or a test's own.
type Responder interface {
	Respond(context.Context, Request, Observer) (*Response, error)
}

// Compacter lets the provider shorten a conversation. The output of its response replaces the whole history of the
// request.
type Compacter interface {
	Compact(context.Context, Request) (*Response, error)
}

// ErrNoCompaction reports an endpoint without compaction.
var ErrNoCompaction = errors.New("the endpoint does not compact conversations")

// maxPause limits pauses, except those requested by the API.
const maxPause = 30 * time.Second

// Retrying is a Responder that repeats a request after a temporary failure. If the observer keeps an interrupted
// answer, it does not repeat the request: Respond waits and returns the failure.
type Retrying struct {
	Next       Responder
	Attempts   int           // maximum number of attempts; 0 means 6
	FirstPause time.Duration // first pause, doubled each time; 0 means 500 ms
	// MaxOutage limits the time spent on pauses and failed retries, for all requests to a model together. 0 means 10
	// minutes.
	MaxOutage time.Duration
	// Report is called before each pause with the failure. It may be nil.
	Report func(failed *Failure, wait time.Duration) error

	lastModel    string        // the model of the last request
	outageUsed   time.Duration // used part of MaxOutage
	tierRefusals int           // number of refusals by a full flex tier
}

// Respond repeats Next's Respond until it succeeds, fails permanently, or has used up Attempts or MaxOutage. It sets
// the Attempts of a failure.
func (r *Retrying) Respond(ctx context.Context, request Request, observe Observer) (*Response, error) {
	return retry(ctx, r, request.Settings, observe.KeepInterrupted, func() (*Response, error) { return r.Next.Respond(ctx, request, observe) })
}

// Compact repeats Next's Compact in the same way. It returns ErrNoCompaction if Next is no Compacter.
func (r *Retrying) Compact(ctx context.Context, request Request) (*Response, error) {
	compacter, canCompact := r.Next.(Compacter)
	if !canCompact {
		return nil, ErrNoCompaction
	}
	return retry(ctx, r, request.Settings, NoObserver{}.KeepInterrupted, func() (*Response, error) { return compacter.Compact(ctx, request) })
}

// retry calls try until it succeeds, fails permanently, or the limits of r are used up. keepInterrupted reports
// whether the conversation keeps the beginning of an interrupted answer. Then retry waits and returns the failure,
// since the next request continues that answer.
func retry(ctx context.Context, r *Retrying, settings Settings, keepInterrupted func() bool, try func() (*Response, error)) (*Response, error) {
	if r.lastModel != settings.Model { // every model has its own MaxOutage
		r.lastModel, r.outageUsed = settings.Model, 0
	}
	for attempt := 1; ; attempt++ {
		startedAt := time.Now()
		answer, err := try()
		failure, isFailure := errors.AsType[*Failure](err)
		if !isFailure {
			return answer, err
		}
		failure.Attempts = attempt
		if attempt > 1 {
			r.outageUsed += time.Since(startedAt)
		}
		wait := r.pause(attempt, failure.RetryAfter)
		isKept := keepInterrupted()
		cutEdits := settings.NoTools && failure.Kind == Incomplete // the caller tells the model to write less
		outageOver := r.outageUsed+wait > cmp.Or(r.MaxOutage, 10*time.Minute)
		if !failure.Temporary() || cutEdits || outageOver {
			return nil, err
		}
		attemptsUsed := !isKept && attempt >= cmp.Or(r.Attempts, 6)
		if attemptsUsed || r.countTierRefusal(failure, settings) {
			return nil, err
		}
		if !isKept && r.Report != nil {
			if err := r.Report(failure, wait); err != nil {
				return nil, err
			}
		}
		r.outageUsed += wait
		if err := sleep(ctx, wait); err != nil {
			return nil, err
		}
		if isKept { // the next request continues from there
			return nil, err
		}
	}
}

// maxTierRefusals is how many times per run the flex tier may have no room before the run continues
// without it. Such a refusal costs only time.
const maxTierRefusals = 2

// countTierRefusal counts a refusal by a full flex tier. It reports whether maxTierRefusals is reached.
func (r *Retrying) countTierRefusal(failure *Failure, settings Settings) (tooMany bool) {
	if failure.Kind != TierBusy || settings.ServiceTier != FlexTier {
		return false
	}
	r.tierRefusals++
	return r.tierRefusals >= maxTierRefusals
}

// sleep waits, or returns the error of ctx if that ends first.
func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pause returns the wait after an attempt, counted from 1. It doubles from FirstPause up to maxPause, with 10 % of
// jitter. A wait requested by the API takes precedence.
func (r *Retrying) pause(attempt int, requested time.Duration) time.Duration {
	if requested > 0 {
		return requested
	}
	wait := cmp.Or(r.FirstPause, 500*time.Millisecond)
	for range attempt - 1 {
		wait = min(wait*2, maxPause)
	}
	jitter := 0.9 + 0.2*rand.Float64() // 90 to 110 %
	return time.Duration(float64(wait) * jitter)
}
