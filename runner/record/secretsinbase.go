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
	r.redactor.Except(remembered(func(fragment string) bool {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), spareTime)
		defer cancel()
		holds, err := holds(ctx, fragment)
		return err == nil && holds // what can't be looked up is removed
	}))
}

// remembered looks each fragment up once, and mostSpared of them.
func remembered(holds func(fragment string) bool) func(fragment string) bool {
	var mu sync.Mutex
	known := map[string]bool{}
	return func(fragment string) bool {
		mu.Lock()
		defer mu.Unlock()
		if _, looked := known[fragment]; !looked && len(known) < mostSpared {
			known[fragment] = holds(fragment)
		}
		return known[fragment]
	}
}
