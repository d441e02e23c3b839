package sandbox

import (
	"context"
	"sync"
)

// Later is a sandbox that is opened at its first command, under ctx: a run
// that starts none need not pay for it. What Open would refuse is then the
// error of Start; who must know before asks Probe.
func Later(ctx context.Context, o Options) *Sandbox {
	s := new(Sandbox)
	s.opened = sync.OnceValue(func() error { return s.become(ctx, o) })
	return s
}

// become makes s the sandbox that o describes.
func (s *Sandbox) become(ctx context.Context, o Options) error {
	opened, err := Open(ctx, o)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		_ = opened.Close() // nothing was started in it
		return ErrClosed
	}
	defer s.mu.Unlock()
	s.AdoptOrphans, s.inside, s.group, s.level, s.layers, s.tmp, s.reachesOut, s.env = opened.AdoptOrphans, opened.inside, opened.group, opened.level, opened.layers, opened.tmp, opened.reachesOut, opened.env
	s.starter, s.stopServing = opened.starter, opened.stopServing
	return nil
}

// ready opens a sandbox of Later, once.
func (s *Sandbox) ready() error {
	if s.opened == nil {
		return nil
	}
	return s.opened()
}
