package proxy

import (
	"net/http"
	"sync"
	"time"
)

// idleTimer aborts an exchange after a time without data. Once stopped, late reads cannot restart
// its timer, which would hit the next exchange of the connection.
type idleTimer struct {
	wait  time.Duration
	mu    sync.Mutex
	timer *time.Timer
	over  bool
}

// newIdleTimer calls end after limits.idle without data.
func (p *Proxy) newIdleTimer(end func()) *idleTimer {
	return &idleTimer{wait: p.limits.idle, timer: time.AfterFunc(p.limits.idle, end)}
}

// endWhenIdle aborts an exchange after limits.idle: the request to the target and the client's
// reads and writes.
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

// stop ends the watch.
func (s *idleTimer) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	s.timer.Stop()
}
