package runner

import (
	"os"
	"syscall"

	"github.com/agent-ci/agent-ci/policy/sandbox"
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

// warnOfOwner warns where confined commands of root cannot write in a checkout
// of somebody else: they have none of root's privileges.
func (r *run) warnOfOwner() {
	if r.confined.Level == string(sandbox.LevelNone) || os.Geteuid() != 0 {
		return
	}
	info, err := os.Stat(r.checkout.Root())
	if err != nil {
		return
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	mode := info.Mode().Perm()
	if !ok || stat.Uid == 0 || mode&0o002 != 0 || stat.Gid == 0 && mode&0o020 != 0 {
		return
	}
	r.rec.Warn("checkout_owner", "The checkout belongs to the user %d, and commands of the agent, which run as root without its privileges, may not write there; "+
		"run agent-ci as that user, or in a checkout of root's.", stat.Uid)
}
