package proxy

import (
	"net/http"
	"sync"
	"time"
)

// standstill aborts an exchange after a time without data. Once stopped, late reads cannot restart
// its timer, which would hit the next exchange of the connection.
type standstill struct {
	wait  time.Duration
	mu    sync.Mutex
	timer *time.Timer
	over  bool
}

// whenIdle calls end after Limits.Idle without data.
func (p *Proxy) whenIdle(end func()) *standstill {
	return &standstill{wait: p.limits.Idle, timer: time.AfterFunc(p.limits.Idle, end)}
}

// endWhenIdle aborts an exchange after Limits.Idle: the request to the target and the client's
// reads and writes.
func (p *Proxy) endWhenIdle(client *http.ResponseController, cancel func()) *standstill {
	return p.whenIdle(func() {
		cancel()
		_ = client.SetReadDeadline(time.Now())
		_ = client.SetWriteDeadline(time.Now())
	})
}

// putOff begins the wait anew.
func (s *standstill) putOff() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.timer.Reset(s.wait)
	}
}

// Stop ends the watch.
func (s *standstill) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	s.timer.Stop()
}
