package repair

import (
	"fmt"
	"slices"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/changeset"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/check/judge"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// RequireKeptTests returns an error if a repair removes or breaks tests of the base. It exempts tests in files
// that the pull request changed and the repair did not. before is the pull request's change.
func RequireKeptTests(before, change *gitops.ChangeSet, table transcript.Verify) error {
	repaired := judge.DifferingPaths(before, change)
	changedOnlyByPull := func(file string) bool {
		return !repaired[file] && slices.ContainsFunc(before.Files, func(f changeset.File) bool { return f.Path == file })
	}
	var broken []string
	for _, old := range table.BrokenOldTests() {
		if !changedOnlyByPull(old.File) {
			broken = append(broken, fmt.Sprintf("%q (%s)", old.Name, old.DescribeState()))
		}
	}
	if !table.Passed {
		return nil
	}
	if why := table.OldTestsGap(); why != "" {
		broken = append(broken, "more is not known, since "+why)
	}
	if len(broken) == 0 {
		return nil
	}
	return outcome.Stopf(outcome.PolicyViolation, "repair_refused",
		"This repair changes what tests of the base do, so it is not pushed: %s.", clip.Some(broken, 10))
}
