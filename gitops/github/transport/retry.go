package transport

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/gitops/internal/origin"
)

const (
	// MaxAttempts is the number of attempts of one call.
	MaxAttempts = 4

	// firstDelay is the wait before the second attempt. It doubles with each attempt.
	firstDelay = 250 * time.Millisecond

	maxDrain = 64 << 10

	// waitBudget limits the waits of one call together. If a rate limit resets later, the call
	// fails.
	waitBudget = 2 * time.Minute

	// limitDelay is the shortest wait that GitHub asks for after a rate limit without a time. It
	// doubles with each attempt.
	limitDelay = time.Minute
)

// Retrier retries temporary failures: network errors, status 5xx, and rate limits that end
// soon. A rate-limited call was not executed, so every call can be retried. After another failure,
// only harmless calls are retried.
type Retrier struct {
	Base  http.RoundTripper
	Clock Clock
}

// Clock tells the time and waits.
type Clock interface {
	Now() time.Time
	// Wait waits for d, or until ctx ends.
	Wait(ctx context.Context, d time.Duration) error
}

// MachineClock is the machine's own clock.
type MachineClock struct{}

func (MachineClock) Now() time.Time { return time.Now() }

func (MachineClock) Wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// RoundTrip sends a request, and repeats it after a temporary failure while waitBudget lasts.
func (r *Retrier) RoundTrip(req *http.Request) (*http.Response, error) {
	remaining := waitBudget
	for attempt := 1; ; attempt++ {
		resp, err := r.Base.RoundTrip(req)
		delay, retry := r.retryDelay(req, resp, err, attempt)
		if !retry || attempt == MaxAttempts || delay > remaining {
			return withoutLimitReset(resp), err
		}
		next, rewindErr := withNewBody(req)
		if rewindErr != nil {
			return resp, err
		}
		Discard(resp)
		if waitErr := r.Clock.Wait(req.Context(), delay); waitErr != nil {
			return nil, errors.Join(waitErr, err)
		}
		req, remaining = next, remaining-delay
	}
}

// withoutLimitReset removes the reset time of a spent rate limit from a successful reply. With it,
// go-github would fail later calls without sending them.
func withoutLimitReset(resp *http.Response) *http.Response {
	if resp != nil && resp.StatusCode < http.StatusBadRequest {
		resp.Header.Del("X-RateLimit-Reset")
	}
	return resp
}

// withNewBody returns the request with a new body.
func withNewBody(req *http.Request) (*http.Request, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return req, nil
	}
	if req.GetBody == nil {
		return nil, errors.New("the body cannot be sent again")
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, err
	}
	again := req.Clone(req.Context())
	again.Body = body
	return again, nil
}

// harmlessPosts lists ends of paths for which a second POST does no harm: GitHub does not add an item
// twice, and the content names a git object.
var harmlessPosts = []string{"/labels", "/assignees", "/requested_reviewers", "/git/blobs", "/git/trees", "/git/commits", "/graphql"}

// mayRepeat reports whether a request may be executed twice without harm.
func mayRepeat(req *http.Request) bool {
	if req.Method != http.MethodPost {
		return true
	}
	return slices.ContainsFunc(harmlessPosts, func(end string) bool { return strings.HasSuffix(req.URL.Path, end) })
}

// retryDelay returns the time to wait before a retry. retry is false if a retry makes no sense or may
// do harm: the request succeeded, may have been executed, or would fail again.
func (r *Retrier) retryDelay(req *http.Request, resp *http.Response, err error, attempt int) (delay time.Duration, retry bool) {
	if req.Context().Err() != nil {
		return 0, false
	}
	backoff := firstDelay<<(attempt-1) + rand.N(firstDelay/2)
	switch {
	case err != nil: // a certificate or redirect error would occur again
		return backoff, !IsCertificateError(err) && !errors.As(err, new(*origin.RedirectError)) && mayRepeat(req)
	case RateLimited(resp):
		backoff = limitDelay << (attempt - 1)
	case resp.StatusCode < http.StatusInternalServerError || resp.StatusCode == http.StatusNotImplemented || !mayRepeat(req):
		return 0, false
	}
	if asked, known := RetryAfter(resp, r.Clock.Now()); known {
		return max(asked, firstDelay), true
	}
	return backoff, true
}

// Discard reads the rest of a small reply, so that the connection can be reused.
func Discard(resp *http.Response) {
	if resp == nil {
		return
	}
	_, _ = io.CopyN(io.Discard, resp.Body, maxDrain)
	_ = resp.Body.Close()
}

// RateLimited reports whether the reply is about a primary or secondary rate limit, with status 403
// or 429: https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
func RateLimited(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusTooManyRequests:
		return true
	case http.StatusForbidden:
		return resp.Header.Get("Retry-After") != "" || resp.Header.Get("X-RateLimit-Remaining") == "0" || namesSecondaryLimit(resp)
	}
	return false
}

// namesSecondaryLimit reports whether the body of a refusal names a secondary rate limit. Such a reply
// may have no header.
func namesSecondaryLimit(resp *http.Response) bool {
	body := bufio.NewReaderSize(resp.Body, maxDrain)
	beginning, _ := body.Peek(maxDrain) // the next read returns the error
	resp.Body = struct {
		io.Reader
		io.Closer
	}{body, resp.Body}
	return strings.Contains(strings.ToLower(string(beginning)), "secondary rate limit")
}

// RetryAfter returns how long the server asks to wait. known is false if the reply does not say it.
func RetryAfter(resp *http.Response, now time.Time) (wait time.Duration, known bool) {
	if value := resp.Header.Get("Retry-After"); value != "" {
		if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
			return time.Duration(seconds) * time.Second, true
		}
		if at, err := http.ParseTime(value); err == nil {
			return max(at.Sub(now), 0), true
		}
	}
	if resp.Header.Get("X-RateLimit-Remaining") != "0" {
		return 0, false
	}
	reset, err := strconv.ParseInt(resp.Header.Get("X-RateLimit-Reset"), 10, 64)
	if err != nil {
		return 0, false
	}
	return max(time.Unix(reset, 0).Sub(now), 0), true
}
