package settings

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/rules"
	"github.com/agent-ci/agent-ci/runner/record/boundedfile"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
)

// rulesFile holds a repository's rules on commands, in its base commit.
const rulesFile = ".github/agent-ci.rules"

// ReadRules reads the rules on commands: the repository's from the base commit, and the operator's
// (policy.rules). Without a checkout, the operator's files must have absolute paths.
func ReadRules(ctx context.Context, base Commit, operators []string) (*rules.Set, error) {
	files, err := base.repositoryRules(operators)
	if err != nil {
		return nil, err
	}
	for _, name := range operators {
		data, err := base.readConfigured(ctx, name)
		if err != nil {
			return nil, outcome.Stopf(outcome.InvalidInput, "rules", "The rules %s (policy.rules) cannot be read: %v; correct the path, or commit the file to the base branch.", name, outcome.WithoutPath(err)).Because(err)
		}
		files = append(files, rules.File{Name: name, Data: data})
	}
	set, err := rules.Load(files...)
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return nil, outcome.Stopf(outcome.InvalidInput, "rules", "The rules on commands have a mistake: %s; agent-ci sandbox --explain -- true lists them all.", first).Because(err)
	}
	return set, nil
}

// repositoryRules reads the rules file of the repository. Without a checkout it returns none, and rejects
// operators' files with relative paths.
func (c Commit) repositoryRules(operators []string) ([]rules.File, error) {
	if c.Checkout == nil {
		if i := slices.IndexFunc(operators, func(name string) bool { return !filepath.IsAbs(name) }); i >= 0 {
			return nil, outcome.Stopf(outcome.InvalidInput, "rules", "The rules %s (policy.rules) are in a repository, and there is none here; name a checkout with --repo, or the rules by an absolute path.", operators[i])
		}
		return nil, nil
	}
	data, err := c.ReadBase(rulesFile, MaxFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return []rules.File{{Name: rulesFile, Data: data}}, err
}

// readConfigured reads a file named by the job, relative to the repository's root or absolute. A
// file inside the checkout is always read from the base commit.
func (c Commit) readConfigured(ctx context.Context, name string) ([]byte, error) {
	if !filepath.IsAbs(name) {
		return c.ReadBase(name, MaxFileBytes)
	}
	file, err := c.locateFile(name)
	if err != nil {
		return nil, err
	}
	if file.pathInCheckout != "" {
		return c.ReadBase(file.pathInCheckout, MaxFileBytes)
	}
	return boundedfile.Read(ctx, file.Path, MaxFileBytes)
}
