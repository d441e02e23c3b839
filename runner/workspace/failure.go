package workspace

import (
	"errors"
	"fmt"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/outcome"
)

// CheckoutFailure is the outcome of a checkout that cannot be worked in; nil for no
// error.
func CheckoutFailure(err error) error {
	var damaged *gitops.ObjectError
	var used *gitops.InUseError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &damaged):
		return damagedRepository(damaged, err)
	case errors.As(err, &used):
		return outcome.Stopf(outcome.InvalidInput, "checkout_in_use", "%s.", outcome.Sentence(used.Error())).Because(err)
	}
	for _, known := range []struct {
		is     bool
		reason string
	}{
		{errors.Is(err, gitops.ErrNotRepository), "no_checkout"},
		{errors.Is(err, gitops.ErrBare), "bare_repository"},
		{errors.Is(err, gitops.ErrNoCommit), "no_commit"},
		{errors.As(err, new(*gitops.UnsupportedError)), "unsupported_checkout"},
		{errors.As(err, new(*gitops.UnknownBaseError)), "unknown_base"},
		{errors.As(err, new(*gitops.DirtyError)), "dirty_checkout"},
		{errors.As(err, new(*gitops.ObstructedError)), "dirty_checkout"},
	} {
		if known.is {
			return outcome.Stopf(outcome.InvalidInput, known.reason, "%s.", outcome.Sentence(err.Error())).Because(err)
		}
	}
	return fmt.Errorf("open the checkout: %w", err)
}

func damagedRepository(damaged *gitops.ObjectError, err error) *outcome.Stop {
	return outcome.Stopf(outcome.InvalidInput, "damaged_repository", "%s.", outcome.Sentence(damaged.Error())).Because(err)
}
