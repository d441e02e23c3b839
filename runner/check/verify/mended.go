package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
)

// maxTouchedFiles is how many files of a change are read for the names of tests.
const maxTouchedFiles = 200

// testsOutsideChange returns the tests outside of files altered or removed by the change. If an output lacks
// them, only these cannot have been removed or skipped there.
func (c Checks) testsOutsideChange(names []string, change *gitops.ChangeSet) ([]string, error) {
	if len(names) == 0 || len(change.Files) > maxTouchedFiles {
		return nil, nil
	}
	names = slices.Clone(names)
	for _, f := range change.Files {
		if len(names) == 0 {
			break
		}
		if !isRegular(f.OldMode) || f.NewID == f.OldID {
			continue
		}
		text, err := c.textOf(f.OldID)
		if err != nil {
			return nil, fmt.Errorf("read %q as it was: %w", f.Path, err)
		}
		names = slices.DeleteFunc(names, func(name string) bool {
			own := testOwnName(name)
			return len(text) == maxTestFileBytes || own != "" && strings.Contains(text, own)
		})
	}
	return names, nil
}

// testOwnName returns a test's probable name in its file: outputs add enclosing names and parameters.
func testOwnName(name string) string {
	for _, mark := range []string{"::", " > ", " › "} {
		if at := strings.LastIndex(name, mark); at >= 0 {
			return beforeParameters(name[at+len(mark):])
		}
	}
	// In Go, packages and subtests may contain slashes and dots.
	for _, begins := range []string{".Test", ".Fuzz", ".Example", ".Benchmark"} {
		if _, rest, ok := strings.Cut("."+name, begins); ok {
			own, _, _ := strings.Cut(begins[1:]+rest, "/")
			return own
		}
	}
	return beforeParameters(name)
}

func beforeParameters(name string) string {
	name, _, _ = strings.Cut(name, " with data set ")
	if at := strings.IndexAny(name, "[("); at > 0 {
		name = name[:at]
	}
	return strings.TrimSpace(name)
}
