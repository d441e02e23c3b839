package proxy

import (
	"net/http"
	"sync"
	"time"
)

// idleTimer aborts an exchange after a time without data. After stop, a late read cannot restart it: it
// would abort the next exchange on the connection.
type idleTimer struct {
	wait  time.Duration
	mu    sync.Mutex
	timer *time.Timer
	over  bool
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
func (s *idleTimer) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.timer.Reset(s.wait)
	}
}

// stop stops the timer for good.
func (s *idleTimer) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	s.timer.Stop()
}
