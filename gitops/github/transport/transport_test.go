package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
)

// reply is what a scripted server answers; status 0 breaks the connection.
type reply struct {
	status int
	header map[string]string
	body   string
}

// script answers with one reply after the other, the last one for good.
func script(t *testing.T, replies ...reply) (url string, calls *atomic.Int32) {
	t.Helper()
	calls = new(atomic.Int32)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		now := replies[min(int(calls.Add(1)), len(replies))-1]
		if now.status == 0 {
			panic(http.ErrAbortHandler)
		}
		for name, value := range now.header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(now.status)
		_, _ = io.WriteString(w, now.body)
	}))
	t.Cleanup(server.Close)
	return server.URL, calls
}

// clockAt stands still, and waits as a function does.
type clockAt struct {
	time.Time
	wait func(context.Context, time.Duration) error
}

func (c clockAt) Now() time.Time                                  { return c.Time }
func (c clockAt) Wait(ctx context.Context, d time.Duration) error { return c.wait(ctx, d) }

func TestRetry(t *testing.T) {
	clock := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(d time.Duration) string { return strconv.FormatInt(clock.Add(d).Unix(), 10) }
	ok := reply{status: 200}
	after := func(status int, value string) reply {
		return reply{status: status, header: map[string]string{"Retry-After": value}}
	}
	spent := func(status int, reset string) reply {
		return reply{status: status, header: map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}}
	}
	backoff := time.Duration(-1)
	cases := []struct {
		name    string
		method  string
		replies []reply
		calls   int
		status  int // 0: an error
		waits   []time.Duration
	}{
		{"server error", "GET", []reply{{status: 502}, ok}, 2, 200, []time.Duration{backoff}},
		{"server error for good", "GET", []reply{{status: 503}}, 4, 503, []time.Duration{backoff, backoff, backoff}},
		{"not implemented", "GET", []reply{{status: 501}}, 1, 501, nil},
		{"broken connection", "GET", []reply{{status: 0}, ok}, 2, 200, []time.Duration{backoff}},
		{"broken connection of a write", "POST", []reply{{status: 0}, ok}, 1, 0, nil},
		{"write", "POST", []reply{{status: 502}, ok}, 1, 502, nil},
		{"limited with seconds", "GET", []reply{after(429, "7"), ok}, 2, 200, []time.Duration{7 * time.Second}},
		{"limited with date", "GET", []reply{after(429, clock.Add(9*time.Second).Format(http.TimeFormat)), ok}, 2, 200, []time.Duration{9 * time.Second}},
		{"limited as 403", "GET", []reply{after(403, "60"), ok}, 2, 200, []time.Duration{time.Minute}},
		{"limited write", "POST", []reply{after(429, "7"), ok}, 2, 200, []time.Duration{7 * time.Second}},
		{"limited for long", "GET", []reply{after(429, "121"), ok}, 1, 429, nil},
		{"limited again and again", "GET", []reply{after(429, "50")}, 3, 429, []time.Duration{50 * time.Second, 50 * time.Second}},
		{"limited without a time", "GET", []reply{{status: 429}, ok}, 2, 200, []time.Duration{time.Minute}},
		{"secondary limit in words alone", "POST", []reply{{status: 403, body: `{"message": "You have exceeded a secondary rate limit."}`}, ok}, 2, 200, []time.Duration{time.Minute}},
		{"update", "PATCH", []reply{{status: 502}, {status: 0}, ok}, 3, 200, []time.Duration{backoff, backoff}},
		{"spent, reset soon", "GET", []reply{spent(403, at(30*time.Second)), ok}, 2, 200, []time.Duration{30 * time.Second}},
		{"spent, reset late", "GET", []reply{spent(429, at(time.Hour)), ok}, 1, 429, nil},
		{"busy with a time", "GET", []reply{after(503, "3"), ok}, 2, 200, []time.Duration{3 * time.Second}},
		{"forbidden", "GET", []reply{{status: 403}, ok}, 1, 403, nil},
		{"not found", "GET", []reply{{status: 404}, ok}, 1, 404, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			url, calls := script(t, c.replies...)
			var waits []time.Duration
			transport := &Retrier{
				Base: &http.Transport{DisableKeepAlives: true},
				Clock: clockAt{clock, func(_ context.Context, d time.Duration) error {
					if d < 2*time.Second {
						d = backoff
					}
					waits = append(waits, d)
					return nil
				}},
			}
			req := must.Get(http.NewRequestWithContext(t.Context(), c.method, url, strings.NewReader("body")))(t)
			status := 0
			if resp, err := transport.RoundTrip(req); err == nil {
				status = resp.StatusCode
				resp.Body.Close()
			}
			must.Same(t, c.status, status, "status", calls.Load())
			must.Same(t, c.calls, int(calls.Load()), "status", calls.Load())
			must.Same(t, c.waits, waits, "waits")
		})
	}
}

func TestRetryStopsWithItsContext(t *testing.T) {
	url, calls := script(t, reply{status: 429, header: map[string]string{"Retry-After": "60"}})
	ctx, cancel := context.WithCancel(t.Context())
	transport := &Retrier{
		Base: http.DefaultTransport, Clock: clockAt{time.Now(), func(ctx context.Context, d time.Duration) error {
			cancel()
			return MachineClock{}.Wait(ctx, d)
		}},
	}
	req := must.Get(http.NewRequestWithContext(ctx, http.MethodGet, url, nil))(t)
	resp, err := transport.RoundTrip(req)
	if err == nil {
		resp.Body.Close()
	}
	must.Is(t, context.Canceled, err, calls.Load(), "calls, want context.Canceled after 1")
	must.Same(t, 1, calls.Load(), err, "calls, want context.Canceled after 1")
}

func TestBoundsReplyBody(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit int64
		wrong bool
	}{
		{"shorter", 11, false},
		{"as long", 10, false},
		{"longer", 9, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			ten := roundTripper(func(*http.Request) (*http.Response, error) {
				return &http.Response{Body: io.NopCloser(strings.NewReader("0123456789"))}, nil
			})
			resp := must.Get((&BoundedReplies{Base: ten, Limit: c.limit}).RoundTrip(nil))(t)
			_, err := io.ReadAll(resp.Body)
			if wrong := errors.As(err, new(*http.MaxBytesError)); wrong != c.wrong || !wrong && err != nil {
				t.Errorf("err = %v", err)
			}
		})
	}
}

func TestSendsTokenToOriginOnly(t *testing.T) {
	sent := ""
	api := must.Get(url.Parse("https://ghe.example.com/api/v3"))(t)
	transport := &Authorizer{MaySendTo: SameOrigin(api), Token: "t", Base: roundTripper(func(req *http.Request) (*http.Response, error) {
		sent = req.Header.Get("Authorization")
		return &http.Response{Body: http.NoBody}, nil
	})}
	for address, want := range map[string]string{
		"https://ghe.example.com/api/graphql": "Bearer t",
		"https://GHE.example.com:443/x":       "Bearer t",
		"https://ghe.example.com:8443/x":      "",
		"http://ghe.example.com/x":            "",
		"https://example.com/x":               "",
		"https://x.ghe.example.com/x":         "",
	} {
		req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil))(t)
		req.Header.Set("Authorization", "Basic x")
		resp := must.Get(transport.RoundTrip(req))(t)
		resp.Body.Close()
		must.Same(t, want, sent, address, "got Authorization")
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
