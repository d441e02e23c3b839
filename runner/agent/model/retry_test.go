package model

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
)

// failing fails each request in the same way and counts them.
type failing struct {
	failure Failure
	asked   int
}

func (f *failing) Respond(context.Context, Request, Observer) (*Response, error) {
	f.asked++
	failure := f.failure
	return nil, &failure
}

func TestBoundsOutage(t *testing.T) {
	for name, c := range map[string]struct {
		asks  time.Duration // to wait
		lost  time.Duration // before
		tries int
	}{
		"a wait that fits":                {time.Microsecond, 0, 3},
		"a wait that does not":            {time.Hour, 0, 1},
		"an outage that is nearly over":   {0, time.Minute - time.Nanosecond, 1},
		"an outage that has just started": {0, time.Second, 3},
	} {
		next := &failing{failure: Failure{Kind: ServerError, RetryAfter: c.asks}}
		r := &Retrying{Next: next, Attempts: 3, FirstPause: time.Microsecond, MaxOutage: time.Minute, outageUsed: c.lost}
		_, err := r.Respond(t.Context(), Request{}, NoObserver{})
		var failure *Failure
		if !errors.As(err, &failure) || failure.Attempts != c.tries || next.asked != c.tries {
			t.Errorf("%s: %d requests, want %d (%v)", name, next.asked, c.tries, err)
		}
	}
}

func TestRetryEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := &Retrying{Next: &failing{failure: Failure{Kind: ServerError}}, FirstPause: time.Hour, MaxOutage: 3 * time.Hour, Report: func(*Failure, time.Duration) error {
		cancel()
		return nil
	}}
	must.Is(t, context.Canceled, must.Err(r.Respond(ctx, Request{}, NoObserver{})), "Respond")
}

// sometimes fails every request once and answers it then, after a while.
type sometimes struct {
	asked int
	takes time.Duration
}

func (s *sometimes) Respond(context.Context, Request, Observer) (*Response, error) {
	s.asked++
	if s.asked%2 == 1 {
		return nil, &Failure{Kind: ServerError}
	}
	time.Sleep(s.takes)
	return &Response{}, nil
}

func TestSlowAnswerIsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Retrying{Next: &sometimes{takes: 20 * time.Millisecond}, FirstPause: time.Microsecond, MaxOutage: 15 * time.Millisecond}
		for n := range 3 {
			must.Do(t, must.Err(r.Respond(t.Context(), Request{}, NoObserver{})), "request", n+1)
		}
	})
}

// keeping keeps the beginning of each answer.
type keeping struct{ NoObserver }

func (keeping) KeepInterrupted() bool { return true }

func TestWaitsAfterKeptAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Retrying{Next: &failing{failure: Failure{Kind: RateLimited, RetryAfter: 30 * time.Millisecond}}, Attempts: 1}
		began := time.Now()
		_, err := r.Respond(t.Context(), Request{}, keeping{})
		if failure := (*Failure)(nil); !errors.As(err, &failure) || time.Since(began) < 30*time.Millisecond {
			t.Errorf("Respond = %v after %s", err, time.Since(began))
		}
	})
}
