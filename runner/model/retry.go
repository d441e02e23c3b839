package model

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// Responder answers requests: the API, a scripted session, or a test's own.
type Responder interface {
	Respond(context.Context, Request, Observer) (*Response, error)
}

// Retry is one decision to send a request again.
type Retry struct {
	Attempt int // the attempt that failed, from 1
	Failure *Failure
	Wait    time.Duration
}

// Retrying sends a request again when its failure can pass, unless the observer
// keeps what came of the answer. The request is the same bytes each time.
type Retrying struct {
	Next     Responder
	Attempts int           // in all; 0 means 6
	First    time.Duration // first pause, doubled each time; 0 means 500 ms
	Longest  time.Duration // of a pause; 0 means 30 s
	// Report is called before each pause. It may be nil.
	Report func(Retry) error
}

// Respond is Next's, tried until it succeeds, fails for good or the attempts
// are used up.
func (r *Retrying) Respond(ctx context.Context, request Request, observe Observer) (*Response, error) {
	attempts := defaulted(r.Attempts, 6)
	for attempt := 1; ; attempt++ {
		answer, err := r.Next.Respond(ctx, request, observe)
		var failure *Failure
		if err == nil || observe.broken() || !errors.As(err, &failure) || !failure.Temporary() || attempt == attempts {
			return answer, err
		}
		wait := r.pause(attempt, failure.RetryAfter)
		if wait > 2*defaulted(r.Longest, 30*time.Second) {
			return nil, err
		}
		if r.Report != nil {
			if err := r.Report(Retry{Attempt: attempt, Failure: failure, Wait: wait}); err != nil {
				return nil, err
			}
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
	}
}

// pause doubles from First up to Longest with a tenth of jitter; what the
// server asks for goes first.
func (r *Retrying) pause(attempt int, asked time.Duration) time.Duration {
	if asked > 0 {
		return asked
	}
	longest := defaulted(r.Longest, 30*time.Second)
	wait := defaulted(r.First, 500*time.Millisecond)
	for range attempt - 1 {
		wait = min(wait*2, longest)
	}
	return time.Duration(float64(wait) * (0.9 + 0.2*rand.Float64()))
}

func defaulted[T int | time.Duration](v, standard T) T {
	if v == 0 {
		return standard
	}
	return v
}
