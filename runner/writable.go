package runner

import (
	"github.com/agent-ci/agent-ci/runner/outcome"
)

// checkoutWritable makes sure that a change can be made in the checkout, and be
// committed: an agent that can change nothing would end as one that had nothing
// to do.
func (r *run) checkoutWritable() error {
	if r.job.Task.Expects != "change" {
		return nil
	}
	path, err := r.checkout.Unwritable()
	if err == nil {
		return nil
	}
	return outcome.Stopf(outcome.InvalidInput, "checkout_not_writable",
		"The checkout cannot be written (%s: %v); run as the user that it belongs to, or give a checkout that can be written.", path, err).Because(err)
}
