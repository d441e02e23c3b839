package campaign

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/agent-ci/agent-ci/runner/campaign/spec"
)

// Choice describes how to choose targets to start.
type Choice struct {
	Campaign *spec.Campaign
	Plan     *Plan
	Now      func() time.Time
	Most     int // most targets to choose
	// Existing returns the addresses of the targets' open pull requests, by key. Nil means that an open
	// pull request is no reason to skip a target.
	Existing func(context.Context, []Target) (map[string]string, error)
	// OnSkipped receives the report of each target skipped for its open pull request.
	OnSkipped func(Report)
}

// Choose returns the targets that may start now, and why the rest waits. It books targets that already have
// an open pull request as skipped.
func (l *Ledger) Choose(ctx context.Context, o Choice) ([]Target, Wait, error) {
	for {
		next, wait := l.Next(o.Now(), o.Campaign, o.Plan, o.Most)
		skipped, err := l.skipExisting(ctx, o, next)
		if err != nil || !skipped {
			return next, wait, err
		}
	}
}

// skipExisting books targets with an open pull request as skipped, except those that a person wants to run
// again. skipped reports whether it booked any.
func (l *Ledger) skipExisting(ctx context.Context, o Choice, next []Target) (skipped bool, err error) {
	candidates := slices.DeleteFunc(slices.Clone(next), func(t Target) bool { return l.Of(o.Campaign.Name).TargetState(t.Key).Again })
	if o.Existing == nil || len(candidates) == 0 {
		return false, nil
	}
	existing, err := o.Existing(ctx, candidates)
	if err != nil {
		return false, fmt.Errorf("look for open pull requests: %w", err)
	}
	for _, t := range candidates {
		address := existing[t.Key]
		if address == "" {
			continue
		}
		if err := l.Skip(o.Campaign, o.Plan, t, "There is an open pull request already: "+address+"."); err != nil {
			return skipped, err
		}
		skipped = true
		o.OnSkipped(*l.Of(o.Campaign.Name).TargetState(t.Key).Last)
	}
	return skipped, nil
}
