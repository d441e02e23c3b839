package proxy

import (
	"net/http"
	"sync"
	"time"
)

// idleTimer aborts an exchange after a time without data. After stop, a late read cannot restart it: it
// would abort the next exchange on the connection.
type idleTimer struct {
	wait    time.Duration
	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
}

// newIdleTimer returns a timer that calls end after limits.idle without data.
func (p *Proxy) newIdleTimer(end func()) *idleTimer {
	return &idleTimer{wait: p.limits.idle, timer: time.AfterFunc(p.limits.idle, end)}
}

// endWhenIdle returns a timer that aborts an exchange after limits.idle without data: the request to
// the target, and reads from and writes to the client.
func (p *Proxy) endWhenIdle(client *http.ResponseController, cancel func()) *idleTimer {
	return p.newIdleTimer(func() {
		cancel()
		_ = client.SetReadDeadline(time.Now())
		_ = client.SetWriteDeadline(time.Now())
	})
}

// restart restarts the wait.
func (t *idleTimer) restart() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.stopped {
		t.timer.Reset(t.wait)
	}
}

// stop stops the timer for good.
func (t *idleTimer) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	t.timer.Stop()
}
