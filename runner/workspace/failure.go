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
	var unsupported *gitops.UnsupportedError
	var unknown *gitops.UnknownBaseError
	var dirty *gitops.DirtyError
	var obstructed *gitops.ObstructedError
	var used *gitops.InUseError
	stop := func(reason string, told error) error {
		return outcome.Stopf(outcome.InvalidInput, reason, "%s.", outcome.Sentence(told.Error())).Because(err)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, gitops.ErrNotRepository):
		return stop("no_checkout", err)
	case errors.Is(err, gitops.ErrBare):
		return stop("bare_repository", err)
	case errors.Is(err, gitops.ErrNoCommit):
		return stop("no_commit", err)
	case errors.As(err, &damaged):
		return damagedRepository(damaged, err)
	case errors.As(err, &unsupported):
		return stop("unsupported_checkout", err)
	case errors.As(err, &used):
		return stop("checkout_in_use", used)
	case errors.As(err, &unknown):
		return stop("unknown_base", err)
	case errors.As(err, &dirty), errors.As(err, &obstructed):
		return stop("dirty_checkout", err)
	}
	return fmt.Errorf("open the checkout: %w", err)
}

func damagedRepository(damaged *gitops.ObjectError, err error) *outcome.Stop {
	return outcome.Stopf(outcome.InvalidInput, "damaged_repository", "%s.", outcome.Sentence(damaged.Error())).Because(err)
}
