package record

import (
	"context"
	"sync"
	"time"
)

const (
	// mostSpared is how many fragments of secrets are looked up in the base: who
	// prints parts of one on purpose shall not keep the run busy.
	mostSpared = 50
	spareTime  = 10 * time.Second
)

// SpareBase keeps text of the repository from being taken for a part of a
// secret that happens to hold it. holds looks a text up in the base commit.
func (r *Record) SpareBase(ctx context.Context, holds func(ctx context.Context, text string) (bool, error)) {
	s := &spared{known: map[string]bool{}, holds: func(fragment string) bool {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), spareTime)
		defer cancel()
		holds, err := holds(ctx, fragment)
		return err == nil && holds // what can't be looked up is removed
	}}
	r.redactor.Except(s.stands)
}

// spared remembers what was looked up.
type spared struct {
	holds func(fragment string) bool

	mu    sync.Mutex
	known map[string]bool
}

func (s *spared) stands(fragment string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	is, known := s.known[fragment]
	if known || len(s.known) >= mostSpared {
		return is
	}
	is = s.holds(fragment)
	s.known[fragment] = is
	return is
}
