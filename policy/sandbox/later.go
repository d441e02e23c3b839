package sandbox

import (
	"context"
	"sync"
)

// Later is a sandbox that is opened at its first command, under ctx: a run
// that starts none need not pay for it. What Open would refuse is then the
// error of Start, and the next command tries again; who must know before asks
// Probe.
func Later(ctx context.Context, o Options) *Sandbox {
	s := new(Sandbox)
	var one sync.Mutex
	open := false
	s.opened = func() error {
		one.Lock()
		defer one.Unlock()
		if open {
			return nil
		}
		err := s.become(ctx, o)
		open = err == nil
		return err
	}
	return s
}

// become makes s the sandbox that o describes.
func (s *Sandbox) become(ctx context.Context, o Options) error {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return errClosed
	}
	opened, err := Open(ctx, o)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		_ = opened.Close() // nothing was started in it
		return errClosed
	}
	defer s.mu.Unlock()
	s.AdoptOrphans, s.confinement = opened.AdoptOrphans, opened.confinement
	return nil
}
