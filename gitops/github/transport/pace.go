package transport

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// paces are GitHub's limits for requests that create content. The times are slightly longer than
// GitHub's, because requests take a while:
// https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
var paces = []struct {
	most int
	over time.Duration
}{
	{80, time.Minute + 5*time.Second},
	{500, time.Hour + time.Minute},
}

// MaxPace is the longest time that a request waits for its turn.
const MaxPace = time.Hour + 2*time.Minute

// Pacer delays requests that create content, so that all processes with the same file stay within
// the limits.
type Pacer struct {
	Base  http.RoundTripper
	File  string
	Clock Clock
}

// RoundTrip sends a request. If the request creates content, it first waits for its turn.
func (p *Pacer) RoundTrip(req *http.Request) (*http.Response, error) {
	if !createsContent(req) {
		return p.Base.RoundTrip(req)
	}
	turn, err := p.reserveTurn()
	if err != nil { // without a turn, send now: retries obey the server's own limit
		return p.Base.RoundTrip(req)
	}
	if left := turn.Sub(p.Clock.Now()); left > 0 {
		if err := p.Clock.Wait(req.Context(), left); err != nil {
			return nil, fmt.Errorf("wait for a turn among requests that create content: %w", err)
		}
	}
	return p.Base.RoundTrip(req)
}

// createsContent reports whether GitHub counts a request as creating content. Git objects do not count.
func createsContent(req *http.Request) bool {
	return req.Method == http.MethodPost && !strings.HasSuffix(req.URL.Path, "/graphql") && !strings.Contains(req.URL.Path, "/git/")
}

// reserveTurn reserves the next free time in the file and returns it.
func (p *Pacer) reserveTurn() (time.Time, error) {
	f, err := os.OpenFile(p.File, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return time.Time{}, err
	}
	defer f.Close() // also releases the lock
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return time.Time{}, err
	}
	raw, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return time.Time{}, err
	}
	now := p.Clock.Now()
	taken := parseTurns(string(raw), now)
	turn := nextTurn(taken, now)
	var out strings.Builder
	for _, at := range append(taken, turn) {
		fmt.Fprintln(&out, at.UnixMilli())
	}
	if _, err := f.WriteAt([]byte(out.String()), 0); err != nil {
		return time.Time{}, err
	}
	return turn, f.Truncate(int64(out.Len()))
}

// parseTurns parses the reserved times that still count, sorted. It ignores invalid ones, and times
// more than a day ahead.
func parseTurns(text string, now time.Time) []time.Time {
	var turns []time.Time
	oldest := now.Add(-paces[len(paces)-1].over)
	for line := range strings.Lines(text) {
		milli, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if at := time.UnixMilli(milli); err == nil && at.After(oldest) && at.Before(now.Add(24*time.Hour)) {
			turns = append(turns, at)
		}
	}
	slices.SortFunc(turns, time.Time.Compare)
	return turns
}

// nextTurn returns the earliest time that is within all limits and not before the taken ones. Each of paces
// permits up to most turns within the time over.
func nextTurn(taken []time.Time, now time.Time) time.Time {
	turn := now
	if len(taken) > 0 && taken[len(taken)-1].After(turn) { // keep the order of reservations
		turn = taken[len(taken)-1]
	}
	for _, pace := range paces {
		if len(taken) < pace.most {
			continue
		}
		if free := taken[len(taken)-pace.most].Add(pace.over + time.Millisecond); free.After(turn) {
			turn = free
		}
	}
	return turn
}
