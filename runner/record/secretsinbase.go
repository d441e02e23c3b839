package record

import (
	"context"
	"time"
)

const (
	// maxExemptLookups limits the fragments that are looked up in the base. Commands could print
	// any number of them on purpose.
	maxExemptLookups = 50
	exemptTimeout    = 10 * time.Second
)

// ExemptBase stops the redaction of fragments of a secret that the base commit contains anyway.
// inBase reports whether the base contains a text.
func (r *Record) ExemptBase(ctx context.Context, inBase func(ctx context.Context, text string) (bool, error)) {
	r.redactorLock.Lock()
	defer r.redactorLock.Unlock()
	r.isExempt = memoizeLookups(func(fragment string) bool {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), exemptTimeout)
		defer cancel()
		found, err := inBase(ctx, fragment)
		return err == nil && found // after an error the fragment is redacted
	})
	r.redactor.Load().ExemptPublic(r.isExempt)
}
