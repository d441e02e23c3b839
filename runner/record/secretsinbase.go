package record

import (
	"context"
	"time"
)

const (
	// maxExemptLookups bounds the fragments looked up in the base, against deliberate output of many.
	maxExemptLookups = 50
	exemptTimeout    = 10 * time.Second
)

// ExemptBase exempts text of the repository that equals a fragment of a secret. holds searches the
// base commit.
func (r *Record) ExemptBase(ctx context.Context, holds func(ctx context.Context, text string) (bool, error)) {
	r.redactorLock.Lock()
	defer r.redactorLock.Unlock()
	r.isExempt = memoize(func(fragment string) bool {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), exemptTimeout)
		defer cancel()
		holds, err := holds(ctx, fragment)
		return err == nil && holds // what can't be looked up is removed
	})
	r.redactor.Load().ExemptPublic(r.isExempt)
}
