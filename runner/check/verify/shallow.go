package verify

import (
	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// lacksHistory matches messages of git and similar tools about missing commits or tags.
var lacksHistory = lazyregexp.New(`(?i)no names found, cannot describe|no (annotated )?tags can describe|no tag exactly matches|no merge base|` +
	`unknown revision or path|bad revision|bad object|not a valid (object|commit) name|invalid revision range|invalid symmetric difference|\bshallow\b`)

// shallowHint returns advice if a failed check may need commits that a shallow checkout lacks, or "".
func (c Checks) shallowHint(output string) string {
	if !c.Workspace.Checkout().Shallow() || !lacksHistory().MatchString(output) {
		return ""
	}
	return "the checkout is shallow: older commits are missing, and with them perhaps tags and the merge base. If the check needs them, " +
		"fetch the whole history (git fetch --unshallow --tags; fetch-depth: 0 of actions/checkout)"
}
