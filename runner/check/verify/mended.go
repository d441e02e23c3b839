package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
)

// mostTouched is how many files of a change are read for the names of tests.
const mostTouched = 200

// untouched are those of some tests that are in no file which the change altered or
// removed: where an output doesn't name them, only these can't have been taken out or
// skipped there.
func (c Checks) untouched(names []string, change *gitops.ChangeSet) ([]string, error) {
	if len(names) == 0 || len(change.Files) > mostTouched {
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
			own := ownName(name)
			return len(text) == mostOfTest || own != "" && strings.Contains(text, own)
		})
	}
	return names, nil
}

// ownName is by what name a test is written in its file, as far as that can be told: an
// output has what it is in before it, and parameters behind.
func ownName(name string) string {
	for _, mark := range []string{"::", " > ", " › "} {
		if at := strings.LastIndex(name, mark); at >= 0 {
			return beforeParameters(name[at+len(mark):])
		}
	}
	// Of Go, where a package may have slashes and dots, and so may a subtest.
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
