package judge

import (
	"context"
	"io"
	"strings"

	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/runner/job"
	"github.com/agent-ci/agent-ci/runner/outcome"
	"github.com/agent-ci/agent-ci/runner/record"
)

// Case is a change that is judged, and by what.
type Case struct {
	Record *record.Record // which has the change as a patch, and knows the secrets
	Job    *job.Job
	Change *gitops.ChangeSet
	Blob   func(id string) (content io.ReadCloser, size int64, err error) // of the change
}

// Judge refuses a change that the job's policy or limits forbid, and warns of what
// a reviewer should see. Its error is an outcome.Stop where that is so.
func (c Case) Judge(ctx context.Context) error {
	if err := Size(c.Job.Limits, c.Change); err != nil {
		return err
	}
	leaked, err := c.leakedSecrets(ctx)
	if err != nil {
		return err
	}
	if len(leaked) > 0 {
		return outcome.Stopf(outcome.PolicyViolation, "secret",
			"The change holds a secret (%s) and is not published; rotate it if others could see the checkout.", strings.Join(leaked, ", "))
	}
	return c.paths()
}

// Size refuses a change that is larger than the job allows.
func Size(l job.Limits, change *gitops.ChangeSet) error {
	if change.Empty() {
		return nil
	}
	lines := change.Insertions + change.Deletions
	switch {
	case l.DiffFiles > 0 && len(change.Files) > l.DiffFiles:
		return outcome.Stopf(outcome.BudgetExceeded, "diff_files",
			"The change touches %d files, limits.diff_files allows %d; raise it or give a smaller task.", len(change.Files), l.DiffFiles)
	case l.DiffLines > 0 && lines > l.DiffLines:
		return outcome.Stopf(outcome.BudgetExceeded, "diff_lines",
			"The change has %d lines, limits.diff_lines allows %d; raise it or give a smaller task.", lines, l.DiffLines)
	}
	return nil
}
