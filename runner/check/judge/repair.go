package judge

import (
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// refuseChangedWorkflows refuses a repair that changes .github, because the workflows there check the repair.
func (c Case) refuseChangedWorkflows() error {
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
	versions := map[string]version{}
	for _, f := range a.Files {
		versions[f.Path] = version{f.NewMode, f.NewID}
	}
	differ := map[string]bool{}
	for _, f := range b.Files {
		if was, known := versions[f.Path]; !known || was != (version{f.NewMode, f.NewID}) {
			differ[f.Path] = true
		}
		delete(versions, f.Path)
	}
	for path := range versions {
		differ[path] = true
	}
	return differ
}
