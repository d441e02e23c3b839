package record

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-ci/agent-ci/policy/secrets"
)

// redaction removes a run's secrets from texts.
type redaction struct {
	redactor atomic.Pointer[secrets.Redactor]

	mu       sync.Mutex // guards the inputs of the redactor
	secrets  []secrets.Value
	added    []secrets.Value            // of AddSecret
	isExempt func(fragment string) bool // nil before ExemptBase
}

// SetSecrets replaces the redacted values, except those of AddSecret. Nobody may write
// concurrently.
func (r *redaction) SetSecrets(values []secrets.Value) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secrets, r.isExempt = values, nil
	r.updateRedactor()
}

// AddSecret adds a value to redact from now on. Others may write concurrently.
func (r *redaction) AddSecret(name, secret string) {
	value := secrets.Value{Name: name, Secret: secret}
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(r.added, value) {
		return
	}
	r.added = append(r.added, value)
	r.updateRedactor()
}

// updateRedactor makes a new redactor of the current secrets. The caller holds r.mu.
func (r *redaction) updateRedactor() {
	redactor := secrets.NewRedactor(slices.Concat(r.secrets, r.added))
	redactor.ExemptPublic(r.isExempt)
	r.redactor.Store(redactor)
}

// Redact returns text without the secrets of the run.
func (r *redaction) Redact(text string) string { return r.redactor.Load().Redact(text) }

// Redactor returns the run's redactor, which also finds secrets.
func (r *redaction) Redactor() *secrets.Redactor { return r.redactor.Load() }

const (
	// maxExemptLookups limits the fragments that are looked up in the base. Commands could print
	// any number of them on purpose.
	maxExemptLookups = 50
	exemptTimeout    = 10 * time.Second
)

// ExemptBase stops the redaction of fragments of a secret that the base commit contains anyway.
// inBase reports whether the base contains a text.
func (r *redaction) ExemptBase(ctx context.Context, inBase func(ctx context.Context, text string) (bool, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isExempt = memoizeLookups(func(fragment string) bool {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), exemptTimeout)
		defer cancel()
		found, err := inBase(ctx, fragment)
		return err == nil && found // after an error the fragment is redacted
	})
	r.redactor.Load().ExemptPublic(r.isExempt)
}

// memoizeLookups returns holds with a cache. It looks up at most maxExemptLookups fragments; others get
// false.
func memoizeLookups(holds func(fragment string) bool) func(fragment string) bool {
	var mu sync.Mutex
	known := map[string]bool{}
	return func(fragment string) bool {
		mu.Lock()
		defer mu.Unlock()
		if _, looked := known[fragment]; !looked && len(known) < maxExemptLookups {
			known[fragment] = holds(fragment)
		}
		return known[fragment]
	}
}
