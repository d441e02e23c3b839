package record

import (
	"context"
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
	r.hiding.Lock()
	defer r.hiding.Unlock()
	r.spared = remembered(func(fragment string) bool {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), spareTime)
		defer cancel()
		holds, err := holds(ctx, fragment)
		return err == nil && holds // what can't be looked up is removed
	})
	r.redactor.Load().Except(r.spared)
}
