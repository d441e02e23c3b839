package forgetest

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Creations is GitHub's secondary limit for requests that create content. The zero value means no
// limit.
type Creations struct {
	Minute, Hour int
	Clock        interface{ Now() time.Time }
}

// AtOnce is a clock for clients, by which no wait takes time.
type AtOnce struct{}

func (AtOnce) Now() time.Time { return time.Now() }

func (AtOnce) Wait(ctx context.Context, _ time.Duration) error { return ctx.Err() }

// Limited returns the number of requests that were refused because of the limit.
func (f *Forge) Limited() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.limited
}

// limit returns a refusal for a request above the limit, like github.com.
func (f *Forge) limit(r *http.Request) (Reply, bool) {
	l := f.creations
	if l.Minute == 0 || r.Method != http.MethodPost || !strings.HasPrefix(r.URL.Path, restPrefix+"/") || strings.Contains(r.URL.Path, "/git/") {
		return Reply{}, false
	}
	now := l.Clock.Now()
	since := func(d time.Duration) int {
		return len(f.created) - slices.IndexFunc(append(f.created, now.Add(time.Nanosecond)), func(at time.Time) bool { return at.After(now.Add(-d)) })
	}
	if since(time.Minute) >= l.Minute || since(time.Hour) >= l.Hour {
		f.limited++
		return Reply{
			Status: http.StatusForbidden, Header: http.Header{"Retry-After": {"60"}},
			Body: `{"message": "You have exceeded a secondary rate limit and have been temporarily blocked from content creation. Please retry your request again later."}`,
		}, true
	}
	f.created = append(f.created, now)
	return Reply{}, false
}
