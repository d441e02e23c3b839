package record

import (
	"context"
	"time"
)

const (
	// mostSpared bounds the fragments looked up in the base, against deliberate output of many.
	mostSpared = 50
	spareTime  = 10 * time.Second
)

// SpareBase exempts text of the repository that equals a fragment of a secret. holds searches the
// base commit.
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
