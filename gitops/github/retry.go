package github

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

const (
	maxAttempts = 4
	firstDelay  = 250 * time.Millisecond
	maxWait     = time.Minute
	maxDrain    = 64 << 10
)

// retryTransport tries reads again that failed for a reason that passes: a
// network error, a 5xx, or a rate limit that ends within a minute. Writes go
// out once, since a failed one may have been carried out.
type retryTransport struct {
	base http.RoundTripper
	wait func(context.Context, time.Duration) error
	now  func() time.Time
}

func (t *retryTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		return t.base.RoundTrip(req)
	}
	for attempt := 1; ; attempt++ {
		resp, err := t.base.RoundTrip(req)
		delay, again := t.delay(req, resp, err, attempt)
		if !again || attempt == maxAttempts {
			return resp, err
		}
		discard(resp)
		if waitErr := t.wait(req.Context(), delay); waitErr != nil {
			return nil, errors.Join(waitErr, err)
		}
	}
}

func (t *retryTransport) delay(req *http.Request, resp *http.Response, err error, attempt int) (time.Duration, bool) {
	if req.Context().Err() != nil {
		return 0, false
	}
	backoff := firstDelay<<(attempt-1) + rand.N(firstDelay/2)
	if err != nil {
		return backoff, passing(err)
	}
	limited := rateLimited(resp)
	if !limited && resp.StatusCode < http.StatusInternalServerError {
		return 0, false
	}
	asked := retryAfter(resp, t.now())
	if asked > 0 {
		return asked, asked <= maxWait
	}
	return backoff, !limited && resp.StatusCode != http.StatusNotImplemented
}

// passing tells a network error that may be gone next time from one that will
// not be: a certificate that does not fit stays so.
func passing(err error) bool { return !certificateError(err) }

func waitFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// discard reads the rest of a small reply, so that the connection can be used
// again.
func discard(resp *http.Response) {
	if resp == nil {
		return
	}
	_, _ = io.CopyN(io.Discard, resp.Body, maxDrain)
	_ = resp.Body.Close()
}

// rateLimited knows the primary and the secondary limit, which come as 403 or
// 429: https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
func rateLimited(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusTooManyRequests:
		return true
	case http.StatusForbidden:
		return resp.Header.Get("Retry-After") != "" || resp.Header.Get("X-RateLimit-Remaining") == "0"
	}
	return false
}

// retryAfter is how long the server asks to wait; 0 when it does not say.
func retryAfter(resp *http.Response, now time.Time) time.Duration {
	if value := resp.Header.Get("Retry-After"); value != "" {
		if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
			return time.Duration(seconds) * time.Second
		}
		if at, err := http.ParseTime(value); err == nil {
			return max(at.Sub(now), 0)
		}
	}
	if !rateLimited(resp) || resp.Header.Get("X-RateLimit-Remaining") != "0" {
		return 0
	}
	reset, err := strconv.ParseInt(resp.Header.Get("X-RateLimit-Reset"), 10, 64)
	if err != nil {
		return 0
	}
	return max(time.Unix(reset, 0).Sub(now), 0)
}
