package verify

import "regexp"

// lacksHistory is what git and tools that ask it say where commits or tags are missing.
var lacksHistory = regexp.MustCompile(`(?i)no names found, cannot describe|no (annotated )?tags can describe|no tag exactly matches|no merge base|` +
	`unknown revision or path|bad revision|bad object|not a valid (object|commit) name|invalid revision range|invalid symmetric difference|\bshallow\b`)

// shallowHint returns what to say below the output of a failed check that may need more history than a
// shallow checkout has; empty for nothing.
func (c Checks) shallowHint(output string) string {
	if !c.Workspace.Checkout().Shallow() || !lacksHistory.MatchString(output) {
		return ""
	}
	return "the checkout is shallow: older commits are missing, and with them perhaps tags and the merge base. If the check needs them, " +
		"fetch the whole history (git fetch --unshallow --tags; fetch-depth: 0 of actions/checkout)"
}
