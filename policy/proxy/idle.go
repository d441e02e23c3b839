package proxy

import (
	"net/http"
	"sync"
	"time"
)

// standstill ends an exchange in which nothing comes for a while. What still reads when the
// exchange is over does not begin another wait, whose end would be that of what follows on
// the same connection.
type standstill struct {
	wait  time.Duration
	mu    sync.Mutex
	timer *time.Timer
	over  bool
}

// whenIdle ends an exchange by what it is given.
func (p *Proxy) whenIdle(end func()) *standstill {
	return &standstill{wait: p.limits.Idle, timer: time.AfterFunc(p.limits.Idle, end)}
}

// endWhenIdle ends an exchange with a client: what is asked of its target, and what is read of it
// or written to it.
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

// Stop says that the exchange is over.
func (s *standstill) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	s.timer.Stop()
}
