package settings

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"github.com/agent-ci/agent-ci/runner/task/config"

	"github.com/agent-ci/agent-ci/policy/pathname"
	"github.com/agent-ci/agent-ci/runner/record/boundedfile"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/task/job"
)

// ReadOperatorFile reads the operator's hooks. No job can change them. It returns nil for an empty
// name. The file must be outside the checkout, because others can write there.
func ReadOperatorFile(ctx context.Context, name, checkout string) (map[string]job.Hook, error) {
	if name == "" {
		return nil, nil
	}
	if !filepath.IsAbs(name) {
		return nil, outcome.Stopf(outcome.InvalidInput, "operator_file", "The operator's file %s is named by a relative path; give an absolute one.", name)
	}
	if checkout != "" && isFileIn(name, checkout) {
		return nil, outcome.Stopf(outcome.InvalidInput, "operator_file", "The operator's file %s is in the checkout, where others can write; move it elsewhere.", name)
	}
	content, err := boundedfile.Read(ctx, name, MaxFileBytes)
	if err != nil {
		return nil, ReadFailure(name, err)
	}
	hooks, err := job.LoadOperator(name, content)
	var problems config.Problems
	if errors.As(err, &problems) {
		return nil, outcome.Stopf(outcome.InvalidInput, "operator_file", "The operator's file has a mistake: %s", problems[0]).Because(err)
	}
	return hooks, err
}

// isFileIn reports whether a file is in a folder, by its name or through links.
func isFileIn(name, folder string) bool {
	candidates := []string{filepath.Clean(name)}
	if real, err := filepath.EvalSymlinks(name); err == nil {
		candidates = append(candidates, real)
	}
	return slices.ContainsFunc(candidates, func(candidate string) bool { return pathname.IsInAny(candidate, folder) })
}
