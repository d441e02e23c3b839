package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/check/verify/testsource"
)

// maxTouchedFiles is up to how many changed files are searched for names of tests.
const maxTouchedFiles = 200

// testsOutsideChange returns the names that occur in no altered or deleted file. The change cannot have
// removed or skipped these tests. It returns nil if too many files changed.
func (c Checks) testsOutsideChange(names []string, change *gitops.ChangeSet) ([]string, error) {
	if len(names) == 0 || len(change.Files) > maxTouchedFiles {
		return nil, nil
	}
	names = slices.Clone(names)
	for _, f := range change.Files {
		if !isRegular(f.OldMode) || f.NewID == f.OldID || len(names) == 0 {
			continue
		}
		text, err := c.textOf(f.OldID)
		if err != nil {
			return nil, fmt.Errorf("read %q as it was: %w", f.Path, err)
		}
		isCut := len(text) == maxTestFileBytes // any name may be in the rest
		names = slices.DeleteFunc(names, func(name string) bool {
			own := testsource.OwnName(name)
			return isCut || own != "" && strings.Contains(text, own)
		})
	}
	return names, nil
}
