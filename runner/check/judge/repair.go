package judge

import (
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// refuseChangedJudges refuses a repair that changes .github, because the workflows there judge it.
func (c Case) refuseChangedJudges() error {
	if c.RepairedChange == nil {
		return nil
	}
	var paths []string
	for path := range DifferingPaths(c.RepairedChange, c.Change) {
		if folder, _, _ := strings.Cut(path, "/"); strings.EqualFold(folder, ".github") {
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		return nil
	}
	return outcome.Stopf(outcome.PolicyViolation, "repair_refused",
		"A repair must not change .github, and this one changes %s; fix it by hand if the cause is there.", markdown.SomeFiles(paths))
}

// DifferingPaths returns the paths that differ between two changes of one base.
func DifferingPaths(a, b *gitops.ChangeSet) map[string]bool {
	type version struct{ mode, id string }
	in := map[string]version{}
	for _, f := range a.Files {
		in[f.Path] = version{f.NewMode, f.NewID}
	}
	differ := map[string]bool{}
	for _, f := range b.Files {
		if in[f.Path] != (version{f.NewMode, f.NewID}) || !touches(a, f.Path) {
			differ[f.Path] = true
		}
		delete(in, f.Path)
	}
	for path := range in {
		differ[path] = true
	}
	return differ
}

// touches reports whether a change has a path.
func touches(change *gitops.ChangeSet, path string) bool {
	for _, f := range change.Files {
		if f.Path == path {
			return true
		}
	}
	return false
}
